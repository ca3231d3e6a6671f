"""Train a method on several devices with Lightning Fabric, in one process for each device.

The processes receive the method, the batch source and the objective through pipes. The tensors of
these objects are written to a temporary file, which each process maps into memory. Therefore, the
memory contains the features only once.
"""

import pickle
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from surelabel.errors import ConfigError, DataError, InputError, MissingPart
from surelabel.methods import AddsTrainingLosses, Method
from surelabel.progress import Progress
from surelabel.training.batches import BatchSource, TargetUpdatingBatchSource
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.device_messages import exchange_device_messages, receive_device_messages
from surelabel.training.device_task import (
    TENSORS_FILE,
    DeviceTrainingTask,
    load_device_result,
    write_device_task,
)
from surelabel.training.loop import EpochResult
from surelabel.training.objective import Objective

FABRIC_PACKAGE = "lightning_fabric"


def check_training_devices(method: nn.Module, devices: int, device: torch.device) -> None:
    """Check that a method can be trained on several devices, and that the devices exist.

    Args:
        method: Method to train.
        devices: Number of devices, >= 1.
        device: Device of the encoder. If its type is ``cuda``, each process uses one GPU.
            Otherwise, all processes use the CPU.

    Raises:
        InputError: If ``devices`` is out of range or exceeds the number of GPUs.
        MissingPart: If Lightning Fabric is not installed.
        ConfigError: If ``devices`` is above 1, and the method has loss terms or batch normalization
            layers, which need all images of a batch.
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
        cause = "has loss terms"
    elif any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in method.modules()):
        cause = "has batch normalization layers"
    if cause and devices > 1:
        raise ConfigError(
            f"{type(method).__name__} must be trained on one device, because the method {cause} "
            f"that depend on all images of a batch; got {devices} devices. Remove devices."
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
    """Train a method in place on several devices; return loss and penalty of each epoch.

    Each batch of a training run with one process is divided among the devices. The scores of all
    devices are gathered. Therefore, the trained method is equal to that of one process up to
    rounding errors, also for losses and regularizers that compare images. Only random numbers of
    forward passes, such as dropout, differ.

    A checkpoint does not depend on the number of devices. On GPUs, scores are computed in bfloat16.

    Args:
        method: Method to train, as for ``run_training_loop``.
        source: Source of batches with constant targets.
        objective: Loss and regularizers.
        devices: Number of devices, >= 1, each with one process.
        device: Device of the encoder. If its type is ``cuda``, each process uses one GPU.
            Otherwise, all processes use the CPU.
        checkpoint: Checkpoint from which an interrupted run resumes. The first process saves the
            checkpoint.
        progress: Function called after each epoch, as for ``run_training_loop``.
        arguments: Other arguments of ``run_training_loop``.

    Raises:
        InputError, MissingPart, ConfigError: If ``check_training_devices`` raises the error, or if
            the source updates its targets.
        DataError: If a process was killed, or an object cannot be sent to the processes.
        SurelabelError: If ``run_training_loop`` raises the error in a process.
    """
    check_training_devices(method, devices, device)
    if isinstance(source, TargetUpdatingBatchSource):
        raise ConfigError(
            "Self-training must run on one device, because each step updates the targets of a "
            f"whole batch; got {devices} devices. Remove devices."
        )
    n_threads = max(1, torch.get_num_threads() // devices)
    task = DeviceTrainingTask(
        method, source, objective, arguments, checkpoint, torch.get_rng_state(), n_threads
    )
    with TemporaryDirectory(prefix="surelabel-devices-") as name:
        folder = Path(name)
        message = _device_task_message(task, folder)
        with exchange_device_messages(folder, message, devices, device.type) as messages:
            receive_device_messages(messages, devices, progress)
        history = load_device_result(method, folder)
    method.eval()
    return [EpochResult(*losses) for losses in history]


def _device_task_message(task: DeviceTrainingTask, folder: Path) -> bytes:
    """Return the message of a task, whose tensors are written to a folder.

    Raises:
        DataError: If the disk is full, or if an object cannot be pickled.
    """
    try:
        return write_device_task(task, folder / TENSORS_FILE)
    except OSError as error:
        raise DataError(
            f"The tensors of the method and the batches cannot be written to {folder}: "
            f"{error.strerror}. Free disk space, or set TMPDIR to another folder."
        ) from error
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise DataError(
            "The method, the batches and the loss must be picklable for the training processes; "
            f"got the error: {error}. Remove devices, or define the classes in an importable "
            "module."
        ) from error


def objective_on_training_device(objective: Objective, device: torch.device) -> Objective:
    """Return an objective whose label texts are on a device."""
    texts = None if objective.texts is None else objective.texts.to(device)
    return replace(objective, texts=texts)
