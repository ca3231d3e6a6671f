"""Rows on disk: they are read as written, and damage or a full disk is an error."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import DataError
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.shards import (
    Shard,
    ShardRows,
    shard_checksum,
    write_shard,
    write_shard_array,
)


def batch(n, c=3, *, start=0):
    random = np.random.default_rng(start)
    logits, scores = random.standard_normal((2, c, n)).astype(np.float32)
    table = file_state_table([f"/nowhere/{start + row}.jpg" for row in range(n)])
    return ShardRows(table, logits, scores, random.standard_normal((n, 4)).astype(np.float16))


def test_batches_come_back_as_one_without_the_removed_rows(tmp_path):
    parts = [batch(5), batch(7, start=5)]
    shard = Shard.from_entry(tmp_path, write_shard(tmp_path, 12, parts).entry)
    shard.check_files(3)
    left = shard.with_removed_rows([0, 11]).read_active_rows()
    assert left.file_states["path"].to_pylist() == [f"/nowhere/{row}.jpg" for row in range(1, 11)]
    for name, axis in (("logits", 1), ("scores", 1), ("features", 0)):
        both = np.concatenate([getattr(part, name) for part in parts], axis)
        assert np.array_equal(getattr(left, name), np.delete(both, [0, 11], axis))


def test_places_are_those_of_living_rows(tmp_path):
    shard = write_shard(tmp_path, 0, [batch(5)]).with_removed_rows([1])
    wanted = ["/nowhere/3.jpg", "/nowhere/1.jpg", "/nowhere/\udcff.jpg", "elsewhere"]
    assert shard.find_rows(wanted).tolist() == [3]


def test_an_array_grows_as_it_is_written_and_is_what_numpy_writes(tmp_path):
    array = np.arange(2**18, dtype=np.int32).reshape(4, -1)
    sizes = []

    def lines():
        for line in array:
            yield line
            sizes.append(next(tmp_path.glob(".*.new")).stat().st_size)

    write_shard_array(tmp_path / "mine.npy", array.shape, np.int32, lines())
    np.save(tmp_path / "numpy.npy", array)
    whole = (tmp_path / "numpy.npy").read_bytes()
    assert (tmp_path / "mine.npy").read_bytes() == whole
    assert sizes[0] < len(whole) / 3  # no file of holes, whose filling a full disk would kill


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from surelabel.errors import DataError
from surelabel.retrieval.shards import write_shard_array
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    write_shard_array(Path(sys.argv[1]), (4, 1 << 18), np.float32, np.zeros((4, 1 << 18)))
except DataError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_a_full_disk_is_an_error_and_leaves_no_file(tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path / "a.npy")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output == f"{tmp_path}/a.npy cannot be written: File too large.\n"
    assert list(tmp_path.iterdir()) == []


@given(
    n=st.sampled_from([1, 30, 2048, 2049, 5000]), place=st.integers(0, 4999), bit=st.integers(0, 31)
)
def test_a_checksum_changes_with_every_bit(n, place, bit):
    line = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    other = line.copy()
    other.view(np.uint32)[place % n] ^= np.uint32(1 << bit)
    assert shard_checksum(line) != shard_checksum(other)
    assert shard_checksum(line) == shard_checksum(line.copy())


def test_a_label_is_compared_once(tmp_path):
    shard = write_shard(tmp_path, 0, [batch(50)])
    shard.check_files(3)
    shard.verify_checksums([0])
    with (tmp_path / "logits-000.npy").open("r+b") as file:
        file.seek(128)
        file.write(bytes(600))
    shard.verify_checksums([0])
    with pytest.raises(
        DataError, match=r"logits-000\.npy is damaged: the checksum of label 0 does"
    ):
        Shard.from_entry(tmp_path, shard.entry).verify_checksums([2, 0])


@pytest.mark.parametrize("name", ["logits", "scores", "order", "checksums"])
def test_numbers_of_another_kind_are_refused(tmp_path, name):
    shard = write_shard(tmp_path, 0, [batch(50)])
    file = tmp_path / f"{name}-000.npy"
    file.write_bytes(file.read_bytes().replace(b"<", b">", 1))  # one bit: the order of bytes
    with pytest.raises(
        DataError, match=rf"{name}-000\.npy is damaged: expected shape .*, got .* of >"
    ):
        shard.check_files(3)


def test_a_flipped_byte_among_the_paths_is_found(tmp_path):
    shard = write_shard(tmp_path, 0, [batch(500)])
    file = tmp_path / "rows-000.parquet"
    data = bytearray(file.read_bytes())
    data[os.path.getsize(file) // 8] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"rows-000\.parquet is damaged: the file cannot be read"):
        _ = Shard.from_entry(tmp_path, shard.entry).file_states
