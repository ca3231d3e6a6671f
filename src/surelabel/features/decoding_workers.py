"""Decode images in worker processes, and replace processes that are killed or do not respond.

The main process receives messages only while it waits for a message. While the main process
computes, the worker processes decode the tasks that they received before.
"""

import os
import signal
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from threading import Lock
from typing import Any, Generic, TypeVar

from surelabel.features.decoding_process import FailedDecoding, Task, run_decoding_process
from surelabel.features.message_buffer import MessageBuffer

Message = TypeVar("Message")

MAX_SECONDS = 120.0  # maximum time without a message from a process that decodes
MAX_ATTEMPTS = 2  # a process can be killed because of the memory of another process
MAX_MESSAGES = 2  # received messages of an incomplete task that are not yet delivered
MAX_TASKS_OF_WORKER = 64  # unfinished tasks, whose indices fit into the buffer of a connection
POLL_SECONDS = 1.0
JOIN_SECONDS = 5.0  # maximum wait for the end of a killed process, which a file system can delay

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
    replaces it, and decodes the image again. If the second process is killed too, the last message
    of the task is the result of ``message_of_killed``. A worker process that sends no message for
    120 seconds, for example because a network file system does not respond, is killed and replaced
    in the same way. If ``decode`` raises an exception, the main process raises this exception.

    Args:
        decode: Function that decodes the image of a task and returns one or more messages. Each
            call for a task must return equal messages. A message must be picklable and must not
            contain tensors.
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
    """Last message of a task whose worker processes were killed."""

    reason: str


@dataclass(eq=False)
class _Job:
    """A task that was sent to a worker process.

    Attributes:
        index: Index of the task.
        received: Messages that were received and not delivered.
        n_accepted: Number of distinct messages that were received in all attempts.
        n_received: Number of messages that were received in this attempt.
        attempt: Number of the current attempt, from 1. An attempt is counted if the process ended
            while it decoded this job.
        is_finished: Whether the last message was received.
    """

    index: int
    received: deque[Any] = field(default_factory=deque)
    n_accepted: int = 0
    n_received: int = 0
    attempt: int = 1
    is_finished: bool = False

    def add(self, message: Any, *, is_last: bool) -> None:
        """Add a received message, unless an earlier attempt has already sent the message."""
        self.n_received += 1
        if self.n_received > self.n_accepted:
            self.n_accepted += 1
            self.received.append(message)
        self.is_finished = is_last


@dataclass(eq=False)
class _Worker:
    """A worker process.

    Attributes:
        process: The process.
        connection: Connection to the process.
        buffer: Shared memory for the messages of the process.
        jobs: Unfinished jobs, in the order in which the process decodes them.
        silent_seconds: Time for which the main process has waited for the next message.
    """

    process: Any
    connection: Connection
    buffer: MessageBuffer
    jobs: deque[_Job]
    silent_seconds: float = 0.0

    def send(self, jobs: Iterable[_Job]) -> None:
        """Send jobs to the process; if the process was killed, this is detected later."""
        with suppress(OSError):
            self.connection.send([job.index for job in jobs])

    def current_job(self) -> _Job:
        """Return the job that the process decodes; messages of earlier jobs may not be sent yet."""
        current = self.buffer.current_task
        return next((job for job in self.jobs if job.index == current), self.jobs[0])


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
        self._workers: list[_Worker] = []
        for _ in range(workers):
            self._workers.append(self._fork_worker(MessageBuffer(), deque()))

    def messages(
        self, index: int, message_of_killed: Callable[[Task, str], Message]
    ) -> Iterator[Message]:
        """Yield the messages of a task, which is the first task that is not delivered."""
        self._start_jobs()
        job = self._jobs[index]
        while job.received or not job.is_finished:
            while not job.received:
                self._receive()
            message = job.received.popleft()
            if isinstance(message, FailedDecoding):
                raise message.error from RuntimeError(message.trace)
            if isinstance(message, _Killed):
                message = message_of_killed(self._tasks[index], message.reason)
            yield message
        del self._jobs[index]

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join(JOIN_SECONDS)
            worker.connection.close()

    def _start_jobs(self) -> None:
        """Send many tasks at once to the worker processes with the fewest unfinished tasks."""
        if 2 * len(self._jobs) > self._max_pending:
            return
        new_jobs: dict[int, list[_Job]] = defaultdict(list)
        while self._n_started < len(self._tasks) and len(self._jobs) < self._max_pending:
            number = min(range(len(self._workers)), key=lambda n: len(self._workers[n].jobs))
            if len(self._workers[number].jobs) >= MAX_TASKS_OF_WORKER:
                break
            job = self._jobs[self._n_started] = _Job(self._n_started)
            self._n_started += 1
            self._workers[number].jobs.append(job)
            new_jobs[number].append(job)
        for number, jobs in new_jobs.items():
            self._workers[number].send(jobs)

    def _receive(self) -> None:
        """Wait at most ``POLL_SECONDS`` for messages; replace workers that end or time out."""
        awaited = {
            worker.connection: worker
            for worker in self._workers
            if worker.jobs and len(worker.jobs[0].received) < MAX_MESSAGES
        }
        start = time.monotonic()
        ready = wait(list(awaited), POLL_SECONDS)
        # not more than POLL_SECONDS, because all processes can have been suspended
        seconds = min(time.monotonic() - start, POLL_SECONDS)
        for connection, worker in awaited.items():
            if connection in ready:
                self._receive_messages(worker)
                worker.silent_seconds = 0.0
                continue
            worker.silent_seconds += seconds
            if worker.silent_seconds >= MAX_SECONDS:
                self._replace(worker, f"decoding took more than {MAX_SECONDS:g} seconds")

    def _receive_messages(self, worker: _Worker) -> None:
        try:
            messages = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            self._replace(worker, _reason_of_exit_code(worker.process.exitcode))
            return
        for packed, is_last in messages:
            worker.jobs[0].add(worker.buffer.unpack(packed), is_last=is_last)
            if is_last:
                worker.jobs.popleft()

    def _replace(self, worker: _Worker, reason: str) -> None:
        """Fork a process for the unfinished jobs, without the current job if it failed twice."""
        worker.process.kill()
        worker.process.join(JOIN_SECONDS)
        worker.connection.close()
        current = worker.current_job()
        if current.attempt == MAX_ATTEMPTS:
            current.received.append(_Killed(reason))
            current.is_finished = True
            worker.jobs.remove(current)
        current.attempt += 1
        for job in worker.jobs:
            job.n_received = 0
        number = self._workers.index(worker)
        self._workers[number] = self._fork_worker(worker.buffer, worker.jobs)

    def _fork_worker(self, buffer: MessageBuffer, jobs: deque[_Job]) -> _Worker:
        """Return a new worker process, to which the jobs are sent."""
        context = get_context("fork")
        buffer.clear()
        with _FORK_LOCK, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads, which workers do not use
            connection, connection_of_worker = context.Pipe()
            process = context.Process(
                target=run_decoding_process,
                args=(self._decode, self._tasks, connection_of_worker, buffer, os.getpid()),
                daemon=True,
            )
            process.start()
            connection_of_worker.close()
        worker = _Worker(process, connection, buffer, jobs)
        if jobs:
            worker.send(jobs)
        return worker


def _reason_of_exit_code(exit_code: int | None) -> str:
    """Return a description of the end of a process."""
    if exit_code != -signal.SIGKILL:
        return f"the decoding process ended with exit code {exit_code}"
    return "the decoding process was killed (SIGKILL), possibly because of too little memory"
