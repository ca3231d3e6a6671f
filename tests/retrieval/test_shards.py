"""Rows on disk: they are read as written, and damage or a full disk is an error."""

import os
import tracemalloc

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard
from surelabel.retrieval.shards import Shard


def batch(n, c=3, *, start=0):
    random = np.random.default_rng(start)
    logits, scores = random.standard_normal((2, c, n)).astype(np.float32)
    table = file_state_table([f"/nowhere/{start + row}.jpg" for row in range(n)])
    features = random.standard_normal((n, 4)).astype(np.float16)
    return ShardRows.from_arrays(table, logits, scores, features)


def test_places_are_those_of_living_rows(tmp_path):
    shard = write_shard(tmp_path, 0, [batch(5)]).with_removed_rows([1])
    wanted = ["/nowhere/3.jpg", "/nowhere/1.jpg", "/nowhere/\udcff.jpg", "elsewhere"]
    assert shard.find_rows(wanted).tolist() == [3]


def test_a_shard_without_new_removed_rows_stays_open(tmp_path):
    shard = write_shard(tmp_path, 0, [batch(5)]).with_removed_rows([1])
    assert shard.with_removed_rows([1]) is shard.with_removed_rows([])


def test_the_rows_of_a_shard_with_a_removed_row_are_copied_part_by_part(tmp_path):
    n, c = 20_000, 40
    lines = np.zeros((c, n), np.float32)
    table = file_state_table([f"/nowhere/{row}.jpg" for row in range(n)])
    rows = ShardRows.from_arrays(table, lines, lines, np.zeros((n, 64), np.float16))
    shard = write_shard(tmp_path, 0, [rows]).with_removed_rows([7])
    tracemalloc.start()
    try:
        write_shard(tmp_path, 1, [shard.active_rows()])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < lines.nbytes


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
