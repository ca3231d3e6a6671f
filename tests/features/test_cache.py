import hashlib
import multiprocessing
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from surelabel.errors import DataError, InputError
from surelabel.features.cache import (
    CacheUsage,
    FeatureCache,
    content_hash_for_cache,
    default_feature_cache_folder,
    feature_cache_key_of_text,
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def vectors(*keys, width=8):
    return {
        key: np.random.default_rng(sum(key.encode())).normal(size=width).astype(np.float16)
        for key in keys
    }


def same(found, expected):
    return found.keys() == expected.keys() and all(
        np.array_equal(found[key], expected[key]) for key in expected
    )


def test_what_was_put_comes_back_in_this_and_in_another_process_alike(folder):
    cache, arrays = FeatureCache(folder), vectors("a", "b", "c")
    cache.put("model", "images", arrays)
    for reader in (cache, FeatureCache(folder)):
        assert reader.keys("model", "images") == {"a", "b", "c"}
        found = reader.get("model", "images", ["c", "a", "unknown"])
        assert same(found, {key: arrays[key] for key in "ac"})


def test_another_fingerprint_or_kind_shares_nothing(folder):
    cache = FeatureCache(folder)
    cache.put("model", "images", vectors("a"))
    assert cache.get("other", "images", ["a"]) == {}
    assert cache.get("model", "patches", ["a"]) == {}


def test_arrays_of_several_shapes_are_kept_as_fp16(folder):
    cache = FeatureCache(folder)
    arrays = {"a": np.full((2, 3), 1 / 3), "b": np.ones(5, dtype=np.float32), "c": np.float64(2)}
    cache.put("model", "patches", arrays)
    found = cache.get("model", "patches", arrays)
    assert same(found, {key: np.asarray(array).astype(np.float16) for key, array in arrays.items()})
    assert {array.dtype for array in found.values()} == {np.dtype(np.float16)}


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e6])
def test_what_fp16_cannot_hold_is_refused(folder, value):
    with pytest.raises(
        InputError,
        match=r"must be finite in fp16; got NaN, infinity or a value above 65,504 in .* 'a'",
    ):
        FeatureCache(folder).put("model", "images", {"a": [0.0, value]})


def test_what_is_kept_is_not_written_twice(folder):
    cache = FeatureCache(folder)
    cache.put("model", "images", vectors("a", "b"))
    cache.put("model", "images", vectors("a", "b"))
    cache.put("model", "images", {})
    assert len(list(folder.iterdir())) == 1
    cache.put("model", "images", vectors("b", "c"))
    assert cache.status().entries == 3


def test_two_caches_on_one_folder_see_each_other(folder):
    one, two = FeatureCache(folder), FeatureCache(folder)
    assert two.keys("model", "images") == frozenset()
    one.put("model", "images", vectors("a"))
    two.put("model", "images", vectors("b"))
    assert one.keys("model", "images") == two.keys("model", "images") == {"a", "b"}
    one.clear()
    assert two.get("model", "images", ["a", "b"]) == {}


def write_twenty(folder, name):
    warnings.simplefilter("error")
    cache = FeatureCache(folder)
    for step in range(20):
        cache.put("model", "images", {f"{name}{step}": [step, step], f"both{step}": [step]})
        assert cache.get("model", "images", [f"both{step}"])[f"both{step}"] == step


def test_two_processes_may_write_at_once(folder):
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=write_twenty, args=(folder, name)) for name in ("x", "y")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    keys = {f"{name}{step}" for name in ("x", "y", "both") for step in range(20)}
    found = FeatureCache(folder).get("model", "images", keys)
    assert found.keys() == keys
    assert all(array.max() == int(key.strip("xyboth")) for key, array in found.items())


def test_the_oldest_go_first_when_it_is_full(folder):
    cache = FeatureCache(folder)
    cache.put("model", "images", vectors("a", width=1000))
    limit = 3 * cache.status().bytes
    cache = FeatureCache(folder, limit_bytes=limit)
    for key in "bcde":
        cache.put("model", "images", vectors(key, width=1000))
        assert cache.status().bytes <= limit
    assert cache.keys("model", "images") == {"c", "d", "e"}
    FeatureCache(folder, limit_bytes=0).put("model", "images", vectors("f"))
    assert list(folder.iterdir()) == []


def damaged(folder, harm):
    FeatureCache(folder).put("model", "images", vectors("a", "b"))
    (file,) = folder.iterdir()
    file.write_bytes(harm(bytearray(file.read_bytes())))


def flipped(data):
    data[-1] ^= 1
    return data


@pytest.mark.parametrize(
    "harm",
    [lambda data: data[:-3], lambda data: b"", lambda data: b"\xff" * 99, flipped],
    ids=["truncated", "empty", "rubbish", "one bit"],
)
def test_a_damaged_shard_is_dropped_with_one_warning(folder, harm):
    damaged(folder, harm)
    cache = FeatureCache(folder)
    with pytest.warns(UserWarning, match="damaged file of the cache was deleted") as seen:
        assert cache.get("model", "images", ["b", "a"]) == {}
    assert len(seen) == 1
    assert list(folder.iterdir()) == []
    cache.put("model", "images", vectors("a"))
    assert same(cache.get("model", "images", ["a"]), vectors("a"))


def test_a_file_that_another_program_left_is_no_reason_to_fail(folder):
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    FeatureCache(folder).clear()
    assert FeatureCache(folder).status().entries == 0
    assert (folder / "notes.txt").exists()


def test_a_folder_that_cannot_be_written_is_only_a_warning(tmp_path):
    (tmp_path / "file").touch()
    cache = FeatureCache(tmp_path / "file" / "cache")
    with pytest.warns(
        UserWarning, match=r"not added to the cache .*: Not a directory\. .* SURELABEL_CACHE"
    ):
        cache.put("model", "images", vectors("a"))
    assert cache.keys("model", "images") == frozenset()
    with pytest.raises(DataError, match=r"The cache .* cannot be read: Not a directory"):
        cache.status()


def test_status_counts_entries_and_bytes_of_each_fingerprint(folder):
    cache = FeatureCache(folder, limit_bytes=10**6)
    assert cache.status().entries == cache.status().bytes == 0
    cache.put("one", "images", vectors("a", "b"))
    cache.put("one", "patches", vectors("a"))
    cache.put("two", "images", vectors("a"))
    status = cache.status()
    assert (status.folder, status.entries, status.limit_bytes) == (str(folder), 4, 10**6)
    assert {name: size.entries for name, size in status.per_fingerprint.items()} == {
        "one": 3,
        "two": 1,
    }
    assert status.bytes == sum(file.stat().st_size for file in folder.iterdir())
    assert status.bytes == sum(size.bytes for size in status.per_fingerprint.values())
    assert isinstance(status.per_fingerprint["one"], CacheUsage)


def test_clear_also_removes_what_killed_runs_left(folder):
    cache = FeatureCache(folder)
    cache.put("model", "images", vectors("a"))
    (folder / ".0123-abc.safetensors.77.new").touch()
    cache.clear()
    assert list(folder.iterdir()) == []
    assert cache.keys("model", "images") == frozenset()


def test_the_first_write_deletes_what_runs_that_were_killed_days_ago_left(folder):
    FeatureCache(folder).put("model", "images", vectors("a"))
    for name in (".0123-abc.safetensors.0123abcd.new", ".0124-abc.safetensors.4567abcd.new"):
        (folder / name).mkdir()
        (folder / name / "half").touch()
    os.utime(folder / ".0123-abc.safetensors.0123abcd.new", (0, 0))
    FeatureCache(folder).put("model", "images", vectors("b"))
    assert [f.name for f in folder.glob(".*")] == [".0124-abc.safetensors.4567abcd.new"]
    assert len(list(folder.iterdir())) == 3


def test_an_empty_cache_is_still_a_cache(folder):
    assert FeatureCache(folder)
    with pytest.raises(InputError, match=r"limit_bytes must be 0 or more; got -1"):
        FeatureCache(folder, limit_bytes=-1)


def test_the_default_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", "/somewhere/else")
    assert default_feature_cache_folder() == Path("/somewhere/else")
    monkeypatch.delenv("SURELABEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_feature_cache_folder() == Path("/caches/surelabel")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert default_feature_cache_folder() == Path("/home/me/.cache/surelabel")


def test_the_hash_is_of_the_content_and_not_of_the_name(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"pixels" * 1000)
    expected = hashlib.blake2b(b"pixels" * 1000, digest_size=16).hexdigest()
    assert (
        content_hash_for_cache(tmp_path / "a")
        == content_hash_for_cache(str(tmp_path / "b"))
        == expected
    )
    with pytest.raises(DataError, match=r"/lost: no such file or directory$"):
        content_hash_for_cache(tmp_path / "lost")


def test_texts_are_keyed_by_template_and_name(folder):
    keys = {feature_cache_key_of_text(t, n) for t in ("{}", "a {}") for n in ("a dog", "dog", "")}
    assert len(keys) == 6
    cache = FeatureCache(folder)
    cache.put("model", "texts", {feature_cache_key_of_text("a {}", "dog"): [0.5, 1.0]})
    (found,) = cache.get("model", "texts", keys).values()
    assert found.tolist() == [0.5, 1.0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may delete everything")
def test_a_damaged_shard_that_may_not_be_deleted_is_ignored(folder):
    damaged(folder, lambda data: b"")
    folder.chmod(0o500)
    with warnings.catch_warnings(record=True):
        assert FeatureCache(folder).get("model", "images", ["a"]) == {}
    folder.chmod(0o700)


def test_a_shard_of_0_1_0_is_computed_again_and_never_read(folder):
    """The metadata of 0.1.0 had no version."""
    about = {"fingerprint": "f", "kind": "images", "keys": '["a"]', "checksums": "[0]"}
    folder.mkdir(parents=True)
    save_file({"values": np.ones((1, 2), np.float16)}, folder / "0.safetensors", about)
    cache = FeatureCache(folder)
    assert cache.get("f", "images", ["a"]) == {}
    cache.put("f", "images", {"a": np.zeros(2)})
    assert cache.get("f", "images", ["a"])["a"].tolist() == [0, 0]
    assert cache.status().entries == 1
    assert not (folder / "0.safetensors").exists()


def one_shard(folder):
    """The name of the only shard."""
    (shard,) = folder.glob("*.safetensors")
    return shard.name


def test_a_named_pipe_in_the_folder_is_ignored_without_waiting(folder):
    FeatureCache(folder).put("model", "images", vectors("a"))
    os.mkfifo(folder / "0.safetensors")
    assert same(FeatureCache(folder).get("model", "images", ["a"]), vectors("a"))


def test_a_shard_with_nested_metadata_is_computed_again(folder):
    FeatureCache(folder).put("model", "images", vectors("a"))
    metadata = {"version": "2", "fingerprint": "model", "kind": "images", "checksums": "[1]"}
    values = {"values": np.zeros((1, 8), np.float16)}
    save_file(values, folder / one_shard(folder), metadata | {"keys": "[" * 100_000})
    with pytest.warns(UserWarning, match=r"A damaged file of the cache was deleted: .*too deeply"):
        assert FeatureCache(folder).get("model", "images", ["a"]) == {}
