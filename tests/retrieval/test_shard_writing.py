"""New shards: what is written is what was given, and a full disk is an error."""

import subprocess
import sys

import numpy as np
import pytest

from surelabel.retrieval.shard_writing import write_shard, write_shard_array
from surelabel.retrieval.shards import Shard


def rows_of(shard):
    """Rows of a shard as a table and arrays, the features last."""
    rows = shard.active_rows()
    lines = [
        np.stack([rows.read_label(name, column) for column in range(rows.n_labels)])
        for name in ("logits", "scores")
    ]
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


def test_an_array_grows_as_it_is_written_and_is_what_numpy_writes(tmp_path):
    array = np.arange(2**18, dtype=np.int32).reshape(4, -1)
    sizes = []

    def lines():
        for line in array:
            yield line
            sizes.append(next(tmp_path.glob(".*.new/mine.npy")).stat().st_size)

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
from surelabel.retrieval.shard_writing import write_shard_array
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
