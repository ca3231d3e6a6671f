"""Arrays that are written part by part; a full disk is an error."""

import subprocess
import sys

import numpy as np
import pytest

from surelabel.retrieval.shard_array_writing import write_shard_array


def test_an_array_grows_as_it_is_written_and_is_what_numpy_writes(tmp_path):
    array = np.arange(2**18, dtype=np.int32).reshape(4, -1)
    sizes = []

    def lines():
        for line in array:
            yield line
            sizes.append(next(tmp_path.glob(".*.new/mine.npy")).stat().st_size)

    write_shard_array(tmp_path / "mine.npy", array.shape[1], np.int32, lines())
    np.save(tmp_path / "numpy.npy", array)
    whole = (tmp_path / "numpy.npy").read_bytes()
    assert (tmp_path / "mine.npy").read_bytes() == whole
    assert sizes[0] < len(whole) / 3  # no file of holes, whose filling a full disk would kill


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from surelabel.errors import DataError
from surelabel.retrieval.shard_array_writing import write_shard_array
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    write_shard_array(Path(sys.argv[1]), 1 << 18, np.float32, np.zeros((4, 1 << 18)))
except DataError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_a_full_disk_is_an_error_and_leaves_no_file(tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path / "a.npy")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output == f"{tmp_path}/a.npy cannot be written: File too large.\n"
    assert list(tmp_path.iterdir()) == []
