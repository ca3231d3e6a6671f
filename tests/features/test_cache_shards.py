import os

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.features import FeatureCache, cache_shards
from surelabel.features.cache_shards import (
    cache_shard_names,
    read_cache_shard,
    read_cache_shard_arrays,
)

ARRAYS = {str(row): np.full(4, row, np.float16) for row in range(20)}


@pytest.fixture
def path(tmp_path):
    """Return the path of a shard with twenty arrays."""
    FeatureCache(tmp_path).put("model", "images", ARRAYS)
    (name,) = cache_shard_names(tmp_path)
    return tmp_path / name


def test_the_metadata_describe_the_arrays(path):
    shard = read_cache_shard(path)
    assert (shard.path, shard.fingerprint, shard.kind) == (path, "model", "images")
    assert shard.rows == {key: row for row, key in enumerate(ARRAYS)}
    assert shard.bytes == path.stat().st_size
    assert len(shard.checksums) == 20


@pytest.mark.parametrize("keys", [["7"], ["19", "0", "7"], list(ARRAYS)])
@pytest.mark.parametrize("limit", [0, 2**20])
def test_arrays_read_one_by_one_or_at_once_are_equal(path, keys, limit, monkeypatch):
    monkeypatch.setattr(cache_shards, "MAX_BYTES_READ_AT_ONCE", limit)
    found = read_cache_shard_arrays(read_cache_shard(path), keys)
    assert list(found) == keys
    for key in keys:
        np.testing.assert_array_equal(found[key], ARRAYS[key])


def test_an_unchanged_file_is_read_once_and_a_changed_one_again(path):
    first = read_cache_shard(path)
    assert read_cache_shard(path) is first
    os.utime(path, ns=(0, 1))
    again = read_cache_shard(path)
    assert again is not first
    assert again == first


@pytest.mark.parametrize("limit", [0, 2**20])
def test_a_changed_value_does_not_match_its_checksum(path, limit, monkeypatch):
    monkeypatch.setattr(cache_shards, "MAX_BYTES_READ_AT_ONCE", limit)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # of the last row
    path.write_bytes(content)
    shard = read_cache_shard(path)
    assert read_cache_shard_arrays(shard, ["0", "1"]).keys() == {"0", "1"}
    with pytest.raises(ValueError, match="a checksum does not match"):
        read_cache_shard_arrays(shard, list(ARRAYS))


def test_a_shard_of_another_version_is_none(path, monkeypatch):
    monkeypatch.setattr(cache_shards, "CACHE_VERSION", "3")
    os.utime(path, ns=(0, 2))
    assert read_cache_shard(path) is None


def test_a_folder_that_is_missing_has_no_shards_and_a_folder_is_no_shard(tmp_path):
    assert cache_shard_names(tmp_path / "none") == set()
    (tmp_path / "a.safetensors").mkdir()
    assert cache_shard_names(tmp_path) == {"a.safetensors"}
    with pytest.raises(DataError, match="expected a regular file; got a folder"):
        read_cache_shard(tmp_path / "a.safetensors")
