"""Exchange messages with the processes that train a method, one process for each device.

Each process receives its task through a pipe, and sends lines of JSON. All processes end if one
process fails, or if the main process ends.
"""

import json
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from surelabel.errors import (
    ConfigError,
    DataError,
    InputError,
    MissingPart,
    NotConverged,
    NotFitted,
    UnknownName,
)
from surelabel.progress import Progress, report_progress

START = (
    "from surelabel.package_imports import import_without_garbage_collection as import_module; "
    "import_module('surelabel.training.device_process').run_device_process()"
)
FAILURE_SECONDS = 1.0  # time to wait for failures of other processes after the first failure
END_SECONDS = 1.0  # time between the termination request and the kill of a process

ERRORS = {  # errors that a process sends as a name and a text
    error.__name__: error
    for error in (
        ConfigError,
        DataError,
        InputError,
        MissingPart,
        NotConverged,
        NotFitted,
        UnknownName,
    )
}

DeviceMessage = tuple[int, dict[str, Any] | None]  # index of the process; message, None at its end


@contextmanager
def exchange_device_messages(
    folder: Path, task: bytes, devices: int, accelerator: str
) -> "Iterator[SimpleQueue[DeviceMessage]]":
    """Start one process for each device, yield a queue of messages, and end all processes.

    Args:
        folder: Temporary folder with the tensors of the task, which receives the printed lines.
        task: Message of the task, which each process reads from stdin.
        devices: Number of processes, >= 1.
        accelerator: Type of the devices, ``cpu`` or ``cuda``.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "NODE_RANK": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    messages: SimpleQueue[DeviceMessage] = SimpleQueue()
    processes = list[subprocess.Popen[bytes]]()
    threads = list[Thread]()
    try:
        for index in range(devices):
            log = folder / f"{index}.log"
            arguments = [str(folder), str(index), str(devices), accelerator, str(os.getpid())]
            with log.open("w") as log_file:
                process = subprocess.Popen(
                    [sys.executable, "-c", START, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log_file,
                    env=environment | {"LOCAL_RANK": str(index), "WORLD_SIZE": str(devices)},
                )
            processes.append(process)
            thread = Thread(
                target=_exchange_messages_of_device, args=(index, process, task, log, messages)
            )
            threads.append(thread)
            thread.start()
        yield messages
    finally:
        _end_device_processes(processes)
        for thread in threads:
            thread.join()


def _exchange_messages_of_device(
    index: int,
    process: subprocess.Popen[bytes],
    task: bytes,
    log: Path,
    messages: "SimpleQueue[DeviceMessage]",
) -> None:
    """Send the task to a process, and put its messages into a queue.

    The last message contains the exit code of the process and the last line that it printed.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError), process.stdin:  # the exit code of an ended process is sent
        process.stdin.write(task)
    with process.stdout:
        for line in process.stdout:
            messages.put((index, json.loads(line)))
    code = process.wait()
    lines = log.read_text(errors="replace").splitlines() or [""]
    messages.put((index, {"end": code, "line": lines[-1]}))
    messages.put((index, None))


def _end_device_processes(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def receive_device_messages(
    messages: "SimpleQueue[DeviceMessage]", devices: int, progress: Progress | None
) -> None:
    """Receive the messages of a run until all processes end; report progress and warnings.

    Raises:
        SurelabelError: If a process sends an error. The first error is raised.
        DataError: If a process ends without a result.
    """
    n_running = devices
    while n_running:
        _, message = messages.get()
        if message is None:
            n_running -= 1
        elif "progress" in message:
            done, total = message["progress"]
            report_progress(progress, done, total, "epochs")
        elif "warning" in message:
            warnings.warn(message["warning"], stacklevel=5)
        elif "error" in message:
            raise ERRORS.get(message["error"], DataError)(message["text"])
        elif message["end"]:
            raise _error_of_ended_process((message["end"], message["line"]), messages)


def _error_of_ended_process(
    end: tuple[int, str], messages: "SimpleQueue[DeviceMessage]"
) -> DataError:
    """Return the error of a process that ended without a result.

    If a process ends, the other processes fail. Therefore, the error describes a process that was
    killed, if there is one.

    Args:
        end: Exit code and last printed line of the process that ended first.
        messages: Later messages.
    """
    ends = [end]
    with suppress(Empty):
        while True:
            _, message = messages.get(timeout=FAILURE_SECONDS)
            if message and message.get("end"):
                ends.append((message["end"], message["line"]))
    code, line = min(ends, key=lambda item: item[0])
    reason = f"was killed by signal {-code}" if code < 0 else f"ended with the error: {line}"
    return DataError(
        f"Each training process must finish; one process {reason.rstrip('.')}. Free memory, or use "
        "fewer devices, and run the fit again."
    )
