"""Stored paths of some rows are those of the table, with a limited number of row groups."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from surelabel.retrieval import shard_paths, shard_writing
from surelabel.retrieval.shard_writing import write_shard


def test_paths_of_rows_are_read_from_few_row_groups(tmp_path, batch, monkeypatch):
    monkeypatch.setattr(shard_writing, "ROW_GROUP_SIZE", 4)
    monkeypatch.setattr(shard_paths, "CACHED_GROUPS", 2)
    shard = write_shard(tmp_path, 0, [batch(11)])
    assert shard.mapped_files.path_group_ends.tolist() == [4, 8, 11]
    for rows in ([10, 0, 3, 10, 7], [], [4], range(11), np.array([8, 3])):
        assert shard.paths.of_rows(rows) == [f"/nowhere/{row}.jpg" for row in rows]
        assert len(shard.paths._groups) <= 2


def test_threads_read_the_same_paths(tmp_path, batch, monkeypatch):
    monkeypatch.setattr(shard_writing, "ROW_GROUP_SIZE", 4)
    monkeypatch.setattr(shard_paths, "CACHED_GROUPS", 2)
    shard = write_shard(tmp_path, 0, [batch(40)])
    rows = [list(range(start, 40, 7)) for start in range(7)] * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(shard.paths.of_rows, rows))
    assert found == [[f"/nowhere/{row}.jpg" for row in part] for part in rows]
