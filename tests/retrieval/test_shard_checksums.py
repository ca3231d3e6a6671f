"""Checksums of shard arrays."""

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surelabel.retrieval.shard_checksums import extend_shard_checksum, shard_checksum


@given(
    n=st.sampled_from([1, 30, 2048, 2049, 5000]), place=st.integers(0, 4999), bit=st.integers(0, 31)
)
def test_a_checksum_changes_with_every_bit(n, place, bit):
    line = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    other = line.copy()
    other.view(np.uint32)[place % n] ^= np.uint32(1 << bit)
    assert shard_checksum(line) != shard_checksum(other)
    assert shard_checksum(line) == shard_checksum(line.copy())


def test_the_checksum_of_blocks_is_that_of_all_bytes():
    array = np.random.default_rng(0).standard_normal((1000, 3)).astype(np.float16)
    checksum = 0
    for block in (array[:0], array[:7], array[7:][::1], array[1000:]):
        checksum = extend_shard_checksum(checksum, block)
    assert checksum == zlib.crc32(array.tobytes())
