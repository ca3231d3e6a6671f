"""Send a task to the processes that train a method: objects in a message, and tensors in a file.

The message is a pickle that exists only in memory and in the pipe from the parent process. The file
contains only the bytes of the tensors. Each process maps the file into memory, so that the memory
contains the features only once.
"""

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn

from surelabel.methods import Method
from surelabel.training.batches import BatchSource
from surelabel.training.checkpoint import Checkpoint, StatefulObject
from surelabel.training.objective import Objective

TENSORS_FILE, RESULT_FILE = "tensors.bin", "result.safetensors"
ALIGNMENT = 64  # bytes; each storage starts at a multiple of this number
SENT_IN_FILE = (Tensor, nn.Parameter)  # tensors of other classes are part of the message


@dataclass(frozen=True)
class DeviceTrainingTask:
    """Task that each process of a training run receives first.

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
    random_state: Tensor
    n_threads: int


def write_device_task(task: DeviceTrainingTask, path: Path) -> bytes:
    """Write the tensors of a task to a file, and return the message with the other objects.

    Raises:
        AttributeError, TypeError, pickle.PicklingError: If an object cannot be pickled.
        OSError: If the file cannot be written.
    """
    message = io.BytesIO()
    with path.open("wb") as file:
        _DeviceTaskPickler(message, file).dump(task)
    return message.getvalue()


def read_device_task(message: bytes, path: Path, gpu: int) -> DeviceTrainingTask:
    """Return the task of a message; tensors from a GPU are moved to the GPU of this process.

    Args:
        message: Result of :func:`write_device_task`. The message must come from the parent
            process, because unpickling runs code.
        path: File with the bytes of the tensors. Changes of the tensors do not change the file.
        gpu: Index of the GPU of this process.
    """
    task: DeviceTrainingTask = _DeviceTaskUnpickler(io.BytesIO(message), path, gpu).load()
    return task


def save_device_result(method: Method, history: Sequence[Sequence[float]], folder: Path) -> None:
    """Write a trained method, the state of the random numbers, and the losses to a folder."""
    _device_result(folder).save(_state_of_device_result(method), history)


def load_device_result(method: Method, folder: Path) -> list[list[float]]:
    """Load the result of a task into a method; return loss and penalty of each epoch.

    The state of the default random generator of PyTorch is replaced by that of the first process.
    """
    return _device_result(folder).resume(_state_of_device_result(method))


def _device_result(folder: Path) -> Checkpoint:
    return Checkpoint(folder / RESULT_FILE, run_id="devices")


def _state_of_device_result(method: Method) -> dict[str, StatefulObject | torch.Generator]:
    return {"method": method, "random_generator": torch.default_generator}


@dataclass(frozen=True)
class _SentTensor:
    """Position of a tensor in the file.

    Attributes:
        identity: Identifier of the tensor object.
        span: Start and end of the storage of the tensor in the file, in bytes.
        dtype: Type of the elements.
        view: Size, stride and offset of the tensor in its storage.
        is_parameter: Whether the tensor is a parameter of a module.
        requires_grad: Whether the tensor has a gradient.
        is_on_gpu: Whether the tensor is on a GPU.
    """

    identity: int
    span: tuple[int, int]
    dtype: torch.dtype
    view: tuple[tuple[int, ...], tuple[int, ...], int]
    is_parameter: bool
    requires_grad: bool
    is_on_gpu: bool


class _DeviceTaskPickler(pickle.Pickler):
    """Pickler that writes each storage of the tensors to a file once."""

    def __init__(self, message: BinaryIO, file: BinaryIO):
        super().__init__(message, protocol=5)
        self._file = file
        self._tensors: dict[int, Tensor] = {}  # by identity, which is unique while they exist
        self._spans: dict[int, tuple[int, int]] = {}  # by the address of the storage

    def persistent_id(self, item: Any) -> _SentTensor | None:
        """Return the position of a tensor, or None for other objects."""
        if type(item) not in SENT_IN_FILE or not _has_bytes(item):
            return None
        self._tensors[id(item)] = item
        return _SentTensor(
            id(item),
            self._write_storage(item.untyped_storage()),
            item.dtype,
            (tuple(item.size()), item.stride(), item.storage_offset()),
            isinstance(item, nn.Parameter),
            item.requires_grad,
            item.device.type == "cuda",
        )

    def _write_storage(self, storage: torch.UntypedStorage) -> tuple[int, int]:
        """Return the span of a storage in the file; write the storage if it is new."""
        address = storage.data_ptr()
        if address not in self._spans:
            start = -(-self._file.tell() // ALIGNMENT) * ALIGNMENT
            self._file.seek(start)
            array = torch.empty(0, dtype=torch.uint8).set_(storage.cpu()).numpy()
            self._file.write(array.data)
            self._spans[address] = start, start + storage.nbytes()
        return self._spans[address]


def _has_bytes(tensor: Tensor) -> bool:
    """Return whether the storage of a tensor contains its elements, at least one, as bytes."""
    is_dense = tensor.layout == torch.strided and tensor.device.type != "meta"
    return is_dense and not tensor.is_conj() and not tensor.is_neg() and tensor.numel() > 0


class _DeviceTaskUnpickler(pickle.Unpickler):
    """Unpickler that maps each storage of the tensors from a file once."""

    def __init__(self, message: BinaryIO, path: Path, gpu: int):
        super().__init__(message)
        n_bytes = path.stat().st_size
        self._file = (
            torch.UntypedStorage.from_file(str(path), shared=False, nbytes=n_bytes)
            if n_bytes
            else torch.UntypedStorage(0)
        )
        self._gpu = gpu
        self._tensors: dict[int, Tensor] = {}
        self._storages: dict[int, torch.UntypedStorage] = {}

    def persistent_load(self, sent: _SentTensor) -> Tensor:
        """Return the tensor at a position in the file."""
        if sent.identity not in self._tensors:
            size, stride, offset = sent.view
            storage = self._storage(sent)
            tensor = torch.empty(0, dtype=sent.dtype, device=storage.device)
            tensor.set_(storage, offset, size, stride)
            if sent.is_parameter:
                tensor = nn.Parameter(tensor, sent.requires_grad)
            self._tensors[sent.identity] = tensor.requires_grad_(sent.requires_grad)
        return self._tensors[sent.identity]

    def _storage(self, sent: _SentTensor) -> torch.UntypedStorage:
        start, end = sent.span
        if start not in self._storages:
            storage = self._file[start:end]
            self._storages[start] = storage.cuda(self._gpu) if sent.is_on_gpu else storage
        return self._storages[start]
