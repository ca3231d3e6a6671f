"""This module defines the main function of a worker process that decodes images."""

import gc
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

import torch

from surelabel.data.decoding_memory import limit_decoding_memory
from surelabel.features.message_buffer import MessageBuffer, PackedMessage

Task = TypeVar("Task")

PARENT_CHECK_INTERVAL = 0.5  # seconds
MAX_DELAY = 0.005  # maximum time in seconds before a message is sent


@dataclass(frozen=True)
class FailedDecoding:
    """Last message of a task that raised an exception for a reason other than an unreadable image.

    Attributes:
        error: Exception that the task raised.
        trace: Traceback of the exception in the worker process.
    """

    error: Exception
    trace: str


def run_decoding_process(
    decode: Callable[[Task], Iterable[Any]],
    tasks: Sequence[Task],
    connection: Connection,
    buffer: MessageBuffer,
    parent: int,
) -> None:
    """Decode the tasks whose indices the parent process sends, until the connection is closed.

    The process also ends if the parent process is killed. Messages that C libraries print for
    damaged files are discarded; messages of Python are still printed.

    Args:
        decode: Function that yields the messages of a task.
        tasks: All tasks.
        connection: Connection from which lists of task indices are received, and to which lists of
            messages are sent. Each message has a flag that is True for the last message of its
            task. If a task fails, its last message is ``FailedDecoding``.
        buffer: Shared memory for the arrays of the messages and the index of the current task.
        parent: Identifier of the parent process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends the workers
    Thread(target=_exit_after_parent_process, args=(parent,), daemon=True).start()
    gc.freeze()  # the deletion of an OpenVINO model waits for threads of the parent process
    torch.set_num_threads(1)
    limit_decoding_memory()
    with suppress(OSError):  # if standard error is closed
        _discard_messages_of_c_libraries()
    with suppress(EOFError, OSError):
        while True:
            for messages in _message_lists(decode, tasks, connection.recv(), buffer):
                connection.send(messages)


def _message_lists(
    decode: Callable[[Task], Iterable[Any]],
    tasks: Sequence[Task],
    indices: Sequence[int],
    buffer: MessageBuffer,
) -> Iterator[list[tuple[PackedMessage, bool]]]:
    """Yield lists of messages; a list is complete after ``MAX_DELAY`` seconds or the last task.

    A few long lists are more efficient than many short lists if a task takes microseconds.
    """
    messages: list[tuple[PackedMessage, bool]] = []
    start = time.monotonic()
    for index in indices:
        buffer.current_task = index
        for message, is_last in _messages_of_task(decode, tasks[index]):
            messages.append((buffer.pack(message), is_last))
            if time.monotonic() - start >= MAX_DELAY:
                yield messages
                messages, start = [], time.monotonic()
    if messages:
        yield messages


def _exit_after_parent_process(parent: int) -> None:
    """Wait for the end of the parent process, and end this process.

    The end of the connection is not sufficient, because other processes can have inherited the
    connection.
    """
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_INTERVAL)
    os._exit(1)


def _discard_messages_of_c_libraries() -> None:
    """Redirect the file descriptor of standard error to the null device, but not ``sys.stderr``."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 2)


def _messages_of_task(
    decode: Callable[[Task], Iterable[Any]], task: Task
) -> Iterator[tuple[Any, bool]]:
    """Yield the messages of a task, each with a flag that is True for the last message."""
    waiting: list[Any] = []
    try:
        for message in decode(task):
            if waiting:
                yield waiting.pop(), False
            waiting.append(message)
    except Exception as error:
        yield from ((message, False) for message in waiting)
        yield FailedDecoding(_picklable_error(error), traceback.format_exc()), True
    else:
        yield waiting.pop(), True


def _picklable_error(error: Exception) -> Exception:
    """Return ``error``, or a ``RuntimeError`` with its text if ``error`` cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(repr(error))
    return error
