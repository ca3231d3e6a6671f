import os

import numpy as np
import pytest

from surelabel.features import message_buffer
from surelabel.features.message_buffer import ALIGNMENT, MessageBuffer

ARRAYS = [
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(24).reshape(2, 3, 4)[:, ::2],
    np.zeros((0, 3), dtype=np.uint8),
]


def pack_in_other_process(buffer, messages):
    """Return the packed messages; the process that packs them ends before."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        with os.fdopen(writer, "wb") as file:
            file.write(message_buffer.pickle.dumps([buffer.pack(message) for message in messages]))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        packed = message_buffer.pickle.load(file)
    os.waitpid(pid, 0)
    return packed


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_arrays_of_another_process_are_received_and_can_be_changed():
    buffer = MessageBuffer()
    messages = [("first", ARRAYS, None), ("second", ARRAYS[0] + 1)]
    first, second = (buffer.unpack(p) for p in pack_in_other_process(buffer, messages))
    assert first[0] == "first"
    assert second[0] == "second"
    for received, expected in zip([*first[1], second[1]], [*ARRAYS, ARRAYS[0] + 1], strict=True):
        assert received.dtype == expected.dtype
        np.testing.assert_array_equal(received, expected)
    first[1][0][:] = 0
    np.testing.assert_array_equal(second[1], ARRAYS[0] + 1)


def test_arrays_are_in_the_buffer_and_not_in_the_pickled_message():
    packed = MessageBuffer().pack(np.ones(10_000))
    assert len(packed.pickled) < 300
    assert [end - start for start, end in packed.spans] == [80_000]


def test_messages_that_do_not_fit_are_pickled_until_all_others_are_received(monkeypatch):
    monkeypatch.setattr(message_buffer, "BUFFER_BYTES", 1000 * 8 + ALIGNMENT)
    buffer = MessageBuffer()
    packed = [buffer.pack(np.full(n, n)) for n in (600, 600, 300, 1001)]
    assert [len(p.spans) for p in packed] == [1, 0, 1, 0]
    for n, message in zip((600, 600, 300), packed, strict=False):
        np.testing.assert_array_equal(buffer.unpack(message), np.full(n, n))
    again = buffer.pack(np.full(1000, 7))
    assert again.spans == [(ALIGNMENT, ALIGNMENT + 8000)]
    np.testing.assert_array_equal(buffer.unpack(packed[3]), np.full(1001, 1001))


def test_the_memory_has_no_name():
    before = set(os.listdir("/dev/shm"))
    buffer = MessageBuffer()
    buffer.pack(np.ones(10))
    names = set(os.listdir("/dev/shm")) - before
    assert not any(
        os.stat(f"/dev/shm/{name}").st_size == message_buffer.BUFFER_BYTES for name in names
    )
