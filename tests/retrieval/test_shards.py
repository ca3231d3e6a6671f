"""Rows on disk: they are read as written, and damage or a full disk is an error."""

import tracemalloc

import numpy as np

from surelabel.retrieval import shard_writing, shards
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard


def test_places_are_those_of_living_rows(tmp_path, batch):
    shard = write_shard(tmp_path, 0, [batch(5)]).with_removed_rows([1])
    wanted = ["/nowhere/3.jpg", "/nowhere/1.jpg", "/nowhere/\udcff.jpg", "elsewhere"]
    assert shard.find_rows(wanted).tolist() == [3]


def test_rows_are_found_in_all_row_groups(tmp_path, batch, monkeypatch):
    monkeypatch.setattr(shard_writing, "ROW_GROUP_SIZE", 2)
    monkeypatch.setattr(shards, "PATH_BATCH_GROUPS", 3)
    shard = write_shard(tmp_path, 0, [batch(15)])
    rows = [0, 5, 6, 11, 12, 14]
    assert shard.find_rows([f"/nowhere/{row}.jpg" for row in rows]).tolist() == rows
    assert shard.find_rows([]).tolist() == []


def test_a_shard_without_new_removed_rows_stays_open(tmp_path, batch):
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
