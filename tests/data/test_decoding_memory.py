import pytest

from surelabel.data import image_memory_limit
from surelabel.data.decoding_memory import OTHER_BYTES
from surelabel.features.decoding_workers import decode_in_workers


def decode_with(n_bytes):
    def decode(task):
        yield len(bytearray(n_bytes))  # not written, so the test needs no memory

    with image_memory_limit(1):
        return list(
            decode_in_workers(
                decode, [0], workers=1, max_pending=1, message_of_killed=lambda _, reason: reason
            )
        )


def test_a_decoding_process_cannot_allocate_more_than_its_limit():
    with pytest.raises(MemoryError, match=r"^$"):
        decode_with(2 * OTHER_BYTES)


def test_a_decoding_process_can_allocate_what_an_image_needs():
    assert decode_with(2**20) == [2**20]
