"""Training of a method on several devices: one process for each device, through Lightning Fabric.

Method, batch source and objective are written to a temporary file, from which each process maps its
tensors into memory; features are therefore in memory once. The processes are started by this
module. They end when one of them fails, and when this process ends.
"""

import json
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import torch
from torch import nn

from surelabel.errors import (
    ConfigError,
    DataError,
    InputError,
    MissingPart,
    NotConverged,
    NotFitted,
    UnknownName,
)
from surelabel.methods import AddsTrainingLosses, Method
from surelabel.progress import Progress, report_progress
from surelabel.training.batches import BatchSource, TargetUpdatingBatchSource
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.loop import EpochResult
from surelabel.training.objective import Objective

START = "from surelabel.training.device_process import run_device_process as run; run()"
FABRIC_PACKAGE = "lightning_fabric"
FAILURE_SECONDS = 1.0  # for failures of other processes, after the first one
END_SECONDS = 1.0  # after which a process that was asked to end is killed

ERRORS = {  # of which a process sends the name and the text
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

DeviceMessage = tuple[int, dict[str, Any] | None]  # process, and its message; None at its end


@dataclass(frozen=True)
class DeviceTrainingTask:
    """What each process of a training run reads first.

    Attributes:
        method: Method to train.
        source: Source of the batches.
        objective: Loss and regularizers.
        arguments: Other arguments of ``run_training_loop``.
        checkpoint: Checkpoint of the run, or None.
        random_state: State of the random numbers of PyTorch.
        n_threads: Number of threads of each process.
    """

    method: Method
    source: BatchSource
    objective: Objective
    arguments: dict[str, Any]
    checkpoint: Checkpoint | None
    random_state: torch.Tensor
    n_threads: int


def check_training_devices(method: nn.Module, devices: int, device: torch.device) -> None:
    """Check that a method can be trained on several devices, and that they exist.

    Args:
        method: Method to train.
        devices: Number of devices, >= 1.
        device: Device of the encoder: with ``cuda``, one GPU for each process; otherwise, one
            process on the CPU for each device.

    Raises:
        InputError: If ``devices`` is out of range, or there are fewer GPUs.
        MissingPart: If Lightning Fabric is not installed.
        ConfigError: If the method has loss terms or layers that need all images of a batch.
    """
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise InputError(f"devices must be a whole number of at least 1; got {devices!r}.")
    if device.type == "cuda" and torch.cuda.device_count() < devices:
        raise InputError(
            f"devices must be at most the number of GPUs, {torch.cuda.device_count()}; got "
            f"{devices}. Use fewer devices."
        )
    if find_spec(FABRIC_PACKAGE) is None:
        raise MissingPart(
            "Training on several devices needs the package lightning-fabric, which is not "
            "installed. Run pip install 'surelabel[train]'."
        )
    cause = None
    if isinstance(method, AddsTrainingLosses):
        cause = "has loss terms of internal quantities"
    elif any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in method.modules()):
        cause = "has batch normalization"
    if cause and devices > 1:
        raise ConfigError(
            f"{type(method).__name__} {cause}, which all images of a batch determine; it is "
            f"trained on one device. Got {devices} devices; leave devices out."
        )


def train_on_devices(
    method: Method,
    source: BatchSource,
    *,
    objective: Objective,
    devices: int,
    device: torch.device,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    **arguments: Any,
) -> list[EpochResult]:
    """Train a method in place on several devices; return the loss of each epoch.

    The batches are those of one process, divided among the devices. The scores are gathered, so
    that the result equals that of one process up to rounding errors, also for losses and
    regularizers that compare images. Random numbers of forward passes, such as dropout, differ.

    A checkpoint does not depend on the number of devices. On GPUs, scores are computed in bfloat16.

    Args:
        method: Method to train, as for ``run_training_loop``.
        source: Source of the batches, whose targets are constant.
        objective: Loss and regularizers.
        devices: Number of devices, >= 1, each with one process.
        device: Device of the encoder: ``cuda`` for GPUs; otherwise, processes on the CPU.
        checkpoint: Checkpoint from which an interrupted run resumes. The first process saves it.
        progress: Function called after each epoch, as for ``run_training_loop``.
        arguments: Other arguments of ``run_training_loop``.

    Raises:
        InputError, MissingPart, ConfigError: As for ``check_training_devices``, and if the source
            updates its targets.
        DataError: If a process was killed, or an object cannot be sent to the processes.
    """
    check_training_devices(method, devices, device)
    if isinstance(source, TargetUpdatingBatchSource):
        raise ConfigError(
            "Self-training updates the targets of a whole batch and runs on one device; got "
            f"{devices} devices. Leave devices out."
        )
    n_threads = max(1, torch.get_num_threads() // devices)
    task = DeviceTrainingTask(
        method, source, objective, arguments, checkpoint, torch.get_rng_state(), n_threads
    )
    with TemporaryDirectory(prefix="surelabel-devices-") as folder:
        _write_device_task(task, Path(folder))
        with _device_processes(Path(folder), devices, device.type) as messages:
            history = _receive_device_messages(messages, devices, progress)
        result = torch.load(Path(folder, "result.pt"), map_location="cpu", weights_only=True)
    method.load_state_dict(result["method"])
    torch.set_rng_state(result["random_state"])
    method.eval()
    return history


def _write_device_task(task: DeviceTrainingTask, folder: Path) -> None:
    try:
        torch.save(task, folder / "task.pt")
    except (AttributeError, TypeError, OSError) as error:  # of pickle, or a full disk
        raise DataError(
            f"Method, batches and loss must be written to {folder} for the devices; got: {error}. "
            "Train without devices, or define them in an importable module."
        ) from error


@contextmanager
def _device_processes(
    folder: Path, devices: int, accelerator: str
) -> "Iterator[SimpleQueue[DeviceMessage]]":
    """Start one process for each device, and end all of them afterwards; yield their messages."""
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
    processes = list[subprocess.Popen[str]]()
    threads = list[Thread]()
    try:
        for index in range(devices):
            log = folder / f"{index}.log"
            arguments = [str(folder), str(index), str(devices), accelerator, str(os.getpid())]
            with log.open("w") as log_file:
                process = subprocess.Popen(
                    [sys.executable, "-c", START, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log_file,
                    text=True,
                    env=environment | {"LOCAL_RANK": str(index), "WORLD_SIZE": str(devices)},
                )
            processes.append(process)
            thread = Thread(target=_read_device_messages, args=(index, process, log, messages))
            threads.append(thread)
            thread.start()
        yield messages
    finally:
        _end_device_processes(processes)
        for thread in threads:
            thread.join()


def _read_device_messages(
    index: int,
    process: subprocess.Popen[str],
    log: Path,
    messages: "SimpleQueue[DeviceMessage]",
) -> None:
    """Put the messages of a process into a queue; at its end, its code and last printed line."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            messages.put((index, json.loads(line)))
    code = process.wait()
    lines = log.read_text(errors="replace").splitlines() or [""]
    messages.put((index, {"end": code, "line": lines[-1]}))
    messages.put((index, None))


def _end_device_processes(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _receive_device_messages(
    messages: "SimpleQueue[DeviceMessage]", devices: int, progress: Progress | None
) -> list[EpochResult]:
    """Return the losses of a finished run; report its progress and its warnings.

    Raises:
        SurelabelError: The first error of a process.
        DataError: If a process ended without a result.
    """
    history: list[EpochResult] | None = None
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
        elif "history" in message:
            history = [EpochResult(*losses) for losses in message["history"]]
        elif "error" in message:
            raise ERRORS.get(message["error"], DataError)(message["text"])
        elif message["end"]:
            raise _error_of_ended_process((message["end"], message["line"]), messages)
    assert history is not None  # the first process ended without an error
    return history


def _error_of_ended_process(
    end: tuple[int, str], messages: "SimpleQueue[DeviceMessage]"
) -> DataError:
    """Return the error of a process that ended without a result.

    The end of a process makes the other ones fail, so a process that was killed comes first.

    Args:
        end: Code and last printed line of the process that ended first.
        messages: Later messages.
    """
    ends = [end]
    with suppress(Empty):
        while True:
            _, message = messages.get(timeout=FAILURE_SECONDS)
            if message and message.get("end"):
                ends.append((message["end"], message["line"]))
    code, line = min(ends, key=lambda item: item[0])
    reason = f"signal {-code} killed one" if code < 0 else f"one ended with the error: {line}"
    return DataError(
        f"Each training process must finish; {reason.rstrip('.')}. Free memory, or use fewer "
        "devices, and run the fit again."
    )


def objective_on_training_device(objective: Objective, device: torch.device) -> Objective:
    """Return an objective whose label texts are on a device."""
    texts = None if objective.texts is None else objective.texts.to(device)
    return replace(objective, texts=texts)
