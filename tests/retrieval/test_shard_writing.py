"""New shards: what is written is what was given."""

import numpy as np

from surelabel.retrieval.shard_writing import write_shard
from surelabel.retrieval.shards import Shard


def rows_of(shard):
    """Rows of a shard as a table and arrays, the features last."""
    rows = shard.active_rows()
    labels = [rows.read_label(column) for column in range(rows.n_labels)]
    lines = [np.stack([values[place] for values in labels]) for place in (0, 1)]
    return rows.file_states, *lines, np.concatenate([*rows.read_features()])


def test_batches_come_back_as_one_without_the_removed_rows(tmp_path, batch):
    parts = [write_shard(tmp_path, 0, [batch(5)]), write_shard(tmp_path, 1, [batch(7, start=5)])]
    both = [part.active_rows() for part in parts]
    shard = Shard.from_entry(tmp_path, write_shard(tmp_path, 12, both).entry)
    shard.mapped_files.check(3)
    table, *left = rows_of(shard.with_removed_rows([0, 11]))
    assert table["path"].to_pylist() == [f"/nowhere/{row}.jpg" for row in range(1, 11)]
    for place, axis in ((1, 1), (2, 1), (3, 0)):
        whole = np.concatenate([rows_of(part)[place] for part in parts], axis)
        assert np.array_equal(left[place - 1], np.delete(whole, [0, 11], axis))
