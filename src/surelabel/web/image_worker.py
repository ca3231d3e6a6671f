"""Run tasks of images in worker processes, which are replaced if they crash or take too long."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from surelabel.errors import (
    ConfigError,
    DataError,
    InputError,
    MissingPart,
    NotFitted,
    SurelabelError,
    UnknownName,
)
from surelabel.web.image_process import READY, run_image_process

START_SECONDS = 120.0  # maximum time for the imports of a new process
JOIN_SECONDS = 5.0
MAX_ANSWER_BYTES = 512 * 2**20
TaskResult = tuple[Any, bytes]  # a value of JSON, and bytes
_ERRORS = {
    error.__name__: error
    for error in (ConfigError, DataError, InputError, MissingPart, NotFitted, UnknownName)
}


class ImageWorker:
    """Process that runs one task at a time. A process that fails is replaced at the next task.

    Args:
        module: Name of the module of the tasks.
        seconds: Maximum time of a task in seconds.
        failure: Clause that begins the message of a task whose process fails.
    """

    def __init__(
        self, module: str, *, seconds: float, failure: str = "The image was refused"
    ) -> None:
        self.module, self.seconds, self.failure = module, seconds, failure
        self.n_replaced = 0
        self._is_stopped = False
        self._process: Any = None
        self._connection: Connection | None = None

    def run(self, task: str, arguments: dict[str, Any], seconds: float | None = None) -> TaskResult:
        """Run a task and return its result.

        Args:
            task: Name of the task.
            arguments: Arguments of the task.
            seconds: Maximum time of the task. If None, the maximum time of the worker is used.

        Raises:
            SurelabelError: If the task raised an error of this package. A class that is not in
                ``_ERRORS`` becomes DataError.
            DataError: If the process crashed or did not start, the task took too long, or the
                worker was stopped.
        """
        connection = self.start()
        seconds = self.seconds if seconds is None else seconds
        try:
            connection.send((task, arguments))
            if not connection.poll(seconds):
                self._discard()
                raise DataError(f"{self.failure}: it took more than {seconds:g} seconds.")
            answer = json.loads(connection.recv_bytes(MAX_ANSWER_BYTES))
            content = connection.recv_bytes(MAX_ANSWER_BYTES)
        except (EOFError, OSError, ValueError) as error:
            if isinstance(error, SurelabelError):
                raise
            self._discard()
            raise DataError(
                f"{self.failure}: its worker process crashed, possibly because of too little "
                "memory."
            ) from error
        if "error" in answer:
            raise _ERRORS.get(answer["kind"], DataError)(answer["error"])
        return answer["value"], content

    def start(self) -> Connection:
        """Return the connection to the process, which is started if there is none.

        Raises:
            DataError: If the process does not start, or the worker was stopped.
        """
        if self._connection is not None and self._process.is_alive():
            return self._connection
        self._discard()
        context = get_context("spawn")  # a fork would copy the locks of the other threads
        connection, connection_of_process = context.Pipe()
        self._process = context.Process(
            target=run_image_process,
            args=(connection_of_process, os.getpid(), self.module),
            daemon=True,
        )
        self._process.start()
        connection_of_process.close()
        self._connection = connection
        self._check_not_stopped()
        try:
            is_ready = connection.poll(START_SECONDS) and connection.recv_bytes(99) == READY
        except (EOFError, OSError):
            is_ready = False
        self._check_not_stopped()
        if not is_ready:
            self._discard()
            raise DataError("A worker process for images did not start. Try again later.")
        return connection

    def stop(self) -> None:
        """End the process, and start no other process."""
        self._is_stopped = True
        self.close()

    def close(self) -> None:
        """End the process."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._process.kill()  # first, so that a thread that waits for an answer continues
            self._process.join(JOIN_SECONDS)
            with suppress(OSError):
                connection.close()

    def _check_not_stopped(self) -> None:
        """End a process that was started while `stop` was called.

        Raises:
            DataError: If the worker was stopped.
        """
        if self._is_stopped:
            self.close()
            raise DataError(f"{self.failure}: the server was stopped.")

    def _discard(self) -> None:
        """End a process that failed."""
        if self._connection is not None:
            self.n_replaced += 1
        self.close()


class ImageWorkerPool:
    """Worker processes for the tasks of one module, whose results coroutines can await.

    Args:
        module: Name of the module of the tasks.
        n_workers: Number of processes.
        seconds: Maximum time of a task.
    """

    def __init__(self, module: str, *, n_workers: int, seconds: float) -> None:
        self._executor = ThreadPoolExecutor(n_workers, thread_name_prefix="image-worker")
        self._workers = [ImageWorker(module, seconds=seconds) for _ in range(n_workers)]
        self._idle: SimpleQueue[ImageWorker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    @property
    def n_replaced(self) -> int:
        """Return the number of processes that failed and were replaced."""
        return sum(worker.n_replaced for worker in self._workers)

    def submit(self, task: str, *, seconds: float | None = None, **arguments: Any) -> "Future[Any]":
        """Run a task in the first idle process, and return the future of its result."""
        return self._executor.submit(self._run, task, arguments, seconds)

    async def run(self, task: str, *, seconds: float | None = None, **arguments: Any) -> TaskResult:
        """Run a task in the first idle process, and return its result; see ``ImageWorker.run``."""
        future = self.submit(task, seconds=seconds, **arguments)
        result: TaskResult = await asyncio.wrap_future(future)
        return result

    def start(self) -> None:
        """Start the processes without waiting for them."""
        for _ in self._workers:
            self._executor.submit(partial(self._with_worker, ImageWorker.start))

    def close(self) -> None:
        """End the processes and their threads. Tasks that are not finished fail."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + JOIN_SECONDS
        for worker in self._workers:
            if time.monotonic() < deadline:
                worker.close()
        self._executor.shutdown(wait=True)

    def _run(self, task: str, arguments: dict[str, Any], seconds: float | None) -> TaskResult:
        result: TaskResult = self._with_worker(lambda worker: worker.run(task, arguments, seconds))
        return result

    def _with_worker(self, function: Callable[[ImageWorker], Any]) -> Any:
        worker = self._idle.get()
        try:
            return function(worker)
        finally:
            self._idle.put(worker)
