"""Transfer the arrays in the messages of a worker process through shared memory."""

import mmap
import pickle
from typing import Any, NamedTuple

import numpy as np

BUFFER_BYTES = 32 * 2**20  # memory is allocated only for the part that is used
ALIGNMENT = 64  # bytes; the first 64 bytes are the header


class PackedMessage(NamedTuple):
    """A message that can be sent through a pipe.

    Attributes:
        pickled: The pickled message, without the arrays that are in the buffer.
        spans: Start and end of each array in the buffer, in bytes. If the list is empty, the arrays
            are part of ``pickled``.
    """

    pickled: bytes
    spans: list[tuple[int, int]]


class MessageBuffer:
    """Shared memory, into which a worker process copies the arrays of its messages.

    The memory is an anonymous mapping, which a forked process inherits. The mapping has no name, so
    that it is released when its processes end. The size of ``/dev/shm``, which is small in
    containers, does not limit the mapping. If a message does not fit into the remaining part of the
    buffer, its arrays are sent through the pipe, and the worker process waits until the main
    process receives them. The whole buffer is free again as soon as the main process has received
    all messages in the buffer.
    """

    def __init__(self) -> None:
        self._bytes = np.frombuffer(mmap.mmap(-1, BUFFER_BYTES), dtype=np.uint8)
        self._n_unpacked = self._bytes[:8].view(np.uint64)  # in the header; set by the main process
        self._current_task = self._bytes[8:16].view(np.int64)  # set by the worker process
        self._n_packed = 0
        self._end = ALIGNMENT

    def clear(self) -> None:
        """Discard all messages; called in the main process before a worker process is forked."""
        self._n_unpacked[0], self._current_task[0] = 0, -1

    @property
    def current_task(self) -> int:
        """Return the index of the current task of the worker process, -1 before the first task."""
        return int(self._current_task[0])

    @current_task.setter
    def current_task(self, index: int) -> None:
        self._current_task[0] = index

    def pack(self, message: Any) -> PackedMessage:
        """Copy the arrays of a message into the buffer; called in the worker process."""
        arrays: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(message, protocol=5, buffer_callback=arrays.append)
        if not arrays:
            return PackedMessage(pickled, [])
        if self._n_unpacked[0] == self._n_packed:
            self._end = ALIGNMENT
        views = [array.raw() for array in arrays]
        spans = []
        for view in views:
            spans.append((self._end, self._end + view.nbytes))
            self._end += -(-view.nbytes // ALIGNMENT) * ALIGNMENT
        if self._end > BUFFER_BYTES:
            self._end = spans[0][0]
            return PackedMessage(pickle.dumps(message, protocol=5), [])
        for (start, end), view in zip(spans, views, strict=True):
            self._bytes[start:end] = view
        self._n_packed += 1
        return PackedMessage(pickled, spans)

    def unpack(self, packed: PackedMessage) -> Any:
        """Return a message with copies of its arrays; called once, in the main process."""
        arrays = [self._bytes[start:end].copy() for start, end in packed.spans]
        if arrays:
            self._n_unpacked[0] += 1
        return pickle.loads(packed.pickled, buffers=arrays)
