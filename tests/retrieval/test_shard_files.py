"""Files of a shard: damage is an error that names the file."""

import os

import pytest

from surelabel.errors import DataError
from surelabel.retrieval.shard_writing import write_shard
from surelabel.retrieval.shards import Shard


def test_a_label_is_compared_once(tmp_path, batch):
    shard = write_shard(tmp_path, 0, [batch(50)])
    shard.mapped_files.check(3)
    shard.mapped_files.verify_checksums([0])
    with (tmp_path / "low-000.npy").open("r+b") as file:
        file.seek(128)
        file.write(bytes(90))
    shard.mapped_files.verify_checksums([0])
    with pytest.raises(DataError, match=r"low-000\.npy is damaged: the checksum of label 0 does"):
        Shard.from_entry(tmp_path, shard.entry).mapped_files.verify_checksums([2, 0])


@pytest.mark.parametrize("name", ["high", "low", "first", "scores", "checksums"])
def test_numbers_of_another_kind_are_refused(tmp_path, batch, name):
    shard = write_shard(tmp_path, 0, [batch(50)])
    file = tmp_path / f"{name}-000.npy"
    file.write_bytes(file.read_bytes().replace(b"<", b">", 1))  # one bit: the order of bytes
    with pytest.raises(
        DataError, match=rf"{name}-000\.npy is damaged: expected shape .*, got .* of >"
    ):
        shard.mapped_files.check(3)


def test_a_flipped_byte_among_the_paths_is_found(tmp_path, batch):
    shard = write_shard(tmp_path, 0, [batch(500)])
    file = tmp_path / "rows-000.parquet"
    data = bytearray(file.read_bytes())
    data[os.path.getsize(file) // 8] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"rows-000\.parquet is damaged: the file cannot be read"):
        _ = Shard.from_entry(tmp_path, shard.entry).active_file_states
