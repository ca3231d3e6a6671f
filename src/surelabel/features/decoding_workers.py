"""Worker processes that decode images, and that are replaced if they are killed.

The pixels are sent through pipes and not through shared memory, which is small in containers. For
each worker process, a thread of the main process receives the pixels while the encoder computes.
"""

import os
import signal
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Condition, Lock, Thread
from typing import Any, Generic, TypeVar

from surelabel.features.decoding_process import (
    FailedDecoding,
    Task,
    run_decoding_process,
)

Message = TypeVar("Message")

MAX_MESSAGES = 2  # received messages of a task that wait for the main process
MAX_ATTEMPTS = 2  # a process can be killed because of the memory of another process

_FORK_LOCK = Lock()  # a worker of another thread must not inherit an open end of a connection


def decode_in_workers(
    decode: Callable[[Task], Iterable[Message]],
    tasks: Sequence[Task],
    *,
    workers: int,
    max_pending: int,
    message_of_killed: Callable[[Task, str], Message],
) -> Generator[Message]:
    """Yield the messages of all tasks in the order of the tasks.

    If a worker process is killed, for example because the memory is exhausted, another process
    replaces it, and decodes the image again. If that process is killed too, the last message of
    the task is ``message_of_killed``.

    Args:
        decode: Function that decodes the image of a task and returns one or more messages, equal
            ones in each call. A message can be pickled and contains no tensors.
        tasks: Tasks, one per image.
        workers: Number of worker processes. If 0, the images are decoded in the main process.
        max_pending: Maximum number of tasks that are decoded before their messages are needed.
        message_of_killed: Function of a task and a reason that returns a message.
    """
    if not workers:
        for task in tasks:
            yield from decode(task)
        return
    pool = _DecodingPool(decode, tasks, min(workers, len(tasks)), max_pending)
    try:
        for index in range(len(tasks)):
            yield from pool.messages(index, message_of_killed)
    finally:
        pool.close()


@dataclass(frozen=True)
class _Killed:
    """Last message of a job whose worker process ended too early."""

    exit_code: int | None

    @property
    def reason(self) -> str:
        """Return a description of the end of the process."""
        if self.exit_code != -signal.SIGKILL:
            return f"the decoding process ended with exit code {self.exit_code}"
        return "the decoding process was killed (SIGKILL), possibly because of too little memory"


class _Finished:
    """Last message of a job that is complete."""


_LAST_MESSAGES = (_Finished, FailedDecoding, _Killed)


@dataclass(eq=False)
class _Job:
    """A started task, and the messages that were received and not yet delivered."""

    index: int
    received: deque[Any] = field(default_factory=deque)


@dataclass(frozen=True, eq=False)
class _Worker:
    process: Any
    connection: Connection
    thread: Thread


class _DecodingPool(Generic[Task, Message]):
    """Worker processes of one call of ``decode_in_workers``."""

    def __init__(
        self,
        decode: Callable[[Task], Iterable[Message]],
        tasks: Sequence[Task],
        workers: int,
        max_pending: int,
    ):
        self._decode, self._tasks, self._max_pending = decode, tasks, max_pending
        self._jobs: dict[int, _Job] = {}  # started and not yet delivered
        self._n_started = 0
        self._is_closed = False
        self._changed = Condition()
        self._workers: list[_Worker] = []
        for _ in range(workers):
            self._fork_worker()
        for worker in self._workers:
            worker.thread.start()

    def messages(
        self, index: int, message_of_killed: Callable[[Task, str], Message]
    ) -> Iterator[Message]:
        """Yield the messages of a task; replace each worker process that was killed."""
        job = self._wait_for_job(index)
        n_yielded = 0
        for attempt in range(1, MAX_ATTEMPTS + 1):
            n_received = 0
            while not isinstance(message := self._take(job), _LAST_MESSAGES):
                n_received += 1
                if n_received > n_yielded:  # not a message that is repeated in a second attempt
                    n_yielded += 1
                    yield message
            if isinstance(message, FailedDecoding):
                raise message.error from RuntimeError(message.trace)
            if isinstance(message, _Finished):
                break
            is_last_attempt = attempt == MAX_ATTEMPTS
            self._forget_dead_workers()
            self._fork_worker(None if is_last_attempt else job)
            self._workers[-1].thread.start()
            if is_last_attempt:
                yield message_of_killed(self._tasks[index], message.reason)
        with self._changed:
            del self._jobs[index]
            self._changed.notify_all()

    def close(self) -> None:
        """End all processes and threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.thread.join()
            worker.connection.close()

    def _forget_dead_workers(self) -> None:
        """Release the file descriptors of processes that were killed."""
        self._workers = [
            worker
            for worker in self._workers
            if worker.thread.is_alive() or worker.process.is_alive()
        ]

    def _fork_worker(self, first: _Job | None = None) -> None:
        """Fork a worker process, whose first job is ``first``; its thread is not started."""
        context = get_context("fork")
        with _FORK_LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads, which workers do not use
            connection, connection_of_worker = context.Pipe()
            process = context.Process(
                target=run_decoding_process,
                args=(self._decode, self._tasks, connection_of_worker, os.getpid()),
                daemon=True,
            )
            process.start()
            connection_of_worker.close()
        thread = Thread(target=self._serve_worker, args=(process, connection, first), daemon=True)
        self._workers.append(_Worker(process, connection, thread))

    def _serve_worker(self, process: Any, connection: Connection, first: _Job | None) -> None:
        """Send jobs to a worker process and receive its messages, until there are no more jobs."""
        job = first or self._next_job()
        while job:
            try:
                connection.send(job.index)
                is_last = False
                while not is_last:
                    message, is_last = connection.recv()
                    self._put(job, message, is_last=is_last)
            except (EOFError, OSError):
                process.join()
                connection.close()
                self._put(job, _Killed(process.exitcode), is_last=False)
                return
            job = self._next_job()

    def _next_job(self) -> _Job | None:
        """Start the next job as soon as fewer than ``max_pending`` jobs are open."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._jobs) < self._max_pending)
            if self._is_closed or self._n_started == len(self._tasks):
                return None
            job = self._jobs[self._n_started] = _Job(self._n_started)
            self._n_started += 1
            self._changed.notify_all()
            return job

    def _wait_for_job(self, index: int) -> _Job:
        with self._changed:
            self._changed.wait_for(lambda: index in self._jobs)
            return self._jobs[index]

    def _put(self, job: _Job, message: Any, *, is_last: bool) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(job.received) < MAX_MESSAGES)
            job.received.append(message)
            if is_last and not isinstance(message, FailedDecoding):
                job.received.append(_Finished())
            self._changed.notify_all()

    def _take(self, job: _Job) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: job.received)
            message = job.received.popleft()
            self._changed.notify_all()
            return message
