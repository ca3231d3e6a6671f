"""Worker processes that decode images, and that are replaced if they are killed.

The pixels are sent through pipes and not through shared memory, which is small in containers. For
each worker process, a thread of the main process receives the pixels while the encoder computes.
"""

import signal
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

import torch

Task = TypeVar("Task")
Message = TypeVar("Message")

MAX_MESSAGES = 2  # received messages of a task that wait for the main process
MAX_ATTEMPTS = 2  # a process can be killed because of the memory of another process


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


@dataclass(frozen=True)
class _Failed:
    """Last message of a job that raised an exception other than those of unreadable images."""

    error: Exception
    trace: str


class _Finished:
    """Last message of a job that is complete."""


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
            while not isinstance(message := self._take(job), _Finished | _Killed | _Failed):
                n_received += 1
                if n_received > n_yielded:  # not a message that is repeated in a second attempt
                    n_yielded += 1
                    yield message
            if isinstance(message, _Failed):
                raise message.error from RuntimeError(message.trace)
            if isinstance(message, _Finished):
                break
            is_last_attempt = attempt == MAX_ATTEMPTS
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

    def _fork_worker(self, first: _Job | None = None) -> None:
        """Fork a worker process, whose first job is ``first``; its thread is not started."""
        context = get_context("fork")
        connection, connection_of_worker = context.Pipe()
        inherited = [connection, *(worker.connection for worker in self._workers)]
        process = context.Process(
            target=_run_decoding_worker,
            args=(self._decode, self._tasks, connection_of_worker, inherited),
            daemon=True,
        )
        with warnings.catch_warnings():  # Python warns of threads, which the worker does not use
            warnings.simplefilter("ignore", DeprecationWarning)
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
                message = None
                while not isinstance(message, _Finished | _Failed):
                    message = connection.recv()
                    self._put(job, message)
            except (EOFError, OSError):
                process.join()
                self._put(job, _Killed(process.exitcode))
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

    def _put(self, job: _Job, message: Any) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(job.received) < MAX_MESSAGES)
            job.received.append(message)
            self._changed.notify_all()

    def _take(self, job: _Job) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: job.received)
            message = job.received.popleft()
            self._changed.notify_all()
            return message


def _run_decoding_worker(
    decode: Callable[[Task], Iterable[Message]],
    tasks: Sequence[Task],
    connection: Connection,
    inherited: Sequence[Connection],
) -> None:
    """Decode the tasks whose indices the main process sends, until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends the workers
    torch.set_num_threads(1)
    for other in inherited:  # otherwise, the workers would not notice the end of the main process
        other.close()
    with suppress(EOFError, OSError):
        while True:
            for message in _messages_of_task(decode, tasks[connection.recv()]):
                connection.send(message)


def _messages_of_task(decode: Callable[[Task], Iterable[Message]], task: Task) -> Iterator[Any]:
    try:
        yield from decode(task)
    except Exception as error:
        yield _Failed(error, traceback.format_exc())
    else:
        yield _Finished()
