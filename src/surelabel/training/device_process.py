"""This module defines the main function of a process that trains on one of several devices."""

import json
import logging
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from threading import Thread
from typing import IO, Any

import torch

from surelabel.errors import SurelabelError
from surelabel.training.device_task import TENSORS_FILE, read_device_task, save_device_result
from surelabel.training.device_training import objective_on_training_device
from surelabel.training.loop import run_training_loop
from surelabel.training.training_processes import TrainingProcesses

PARENT_INTERVAL = 0.5  # seconds between checks of the parent process


def run_device_process() -> None:
    """Train on one device according to the command-line arguments, and write messages to stdout.

    The task is read from stdin. A message is a line of JSON: progress, a warning or an error. The
    first process writes the trained method to the folder of the task.
    """
    folder, index, devices, accelerator, parent = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends the processes
    Thread(target=_end_after_parent, args=(int(parent),), daemon=True).start()
    messages = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # text that packages print does not become part of the messages
    code = 1
    try:
        with warnings.catch_warnings():
            _forward_warnings(messages, is_first=index == "0")
            _train_on_device(Path(folder), int(devices), accelerator, messages)
        code = 0
    except SurelabelError as error:
        _send(messages, error=type(error).__name__, text=str(error))
    except Exception:
        traceback.print_exc()
    messages.flush()
    os._exit(code)  # do not wait for other processes with open connections


def _train_on_device(folder: Path, devices: int, accelerator: str, messages: IO[str]) -> None:
    """Train the method of a task; the first process writes the result."""
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    is_cuda = accelerator == "cuda"
    strategy = DDPStrategy(
        cluster_environment=LightningEnvironment(),
        process_group_backend="nccl" if is_cuda else "gloo",
    )
    fabric = Fabric(
        accelerator="cuda" if is_cuda else "cpu",
        devices=devices,
        strategy=strategy,
        precision="bf16-mixed" if is_cuda else "32-true",
    )
    fabric.launch()
    message = sys.stdin.buffer.read()
    task = read_device_task(message, folder / TENSORS_FILE, fabric.local_rank)
    torch.set_num_threads(task.n_threads)
    torch.set_rng_state(task.random_state)
    history = run_training_loop(
        task.method.to(fabric.device),
        task.source,
        objective=objective_on_training_device(task.objective, fabric.device),
        checkpoint=task.checkpoint,
        progress=lambda done, total: _send(messages, progress=[done, total]),
        processes=TrainingProcesses(fabric),
        **task.arguments,
    )
    if fabric.global_rank == 0:
        save_device_result(task.method, history, folder)
    fabric.barrier()


def _send(messages: IO[str], **message: Any) -> None:
    messages.write(json.dumps(message) + "\n")


def _forward_warnings(messages: IO[str], *, is_first: bool) -> None:
    """Send warnings of the first process to the parent process; ignore other warnings."""

    def send_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        if is_first:
            _send(messages, warning=str(message))

    warnings.simplefilter("default")
    warnings.showwarning = send_warning


def _end_after_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_INTERVAL)
    os._exit(1)
