import numpy as np
import pytest

from surelabel.features.cache import FeatureCache
from surelabel.features.cache_write_buffer import MAX_BYTES, MAX_SECONDS, CacheWriteBuffer


@pytest.fixture
def clock(monkeypatch):
    """Time in seconds that the buffer reads."""
    now = [100.0]
    monkeypatch.setattr("surelabel.features.cache_write_buffer.time.monotonic", lambda: now[0])
    return now


def test_features_are_written_after_some_seconds(tmp_path, clock):
    cache = FeatureCache(tmp_path)
    buffer = CacheWriteBuffer(cache, "encoder", "images")
    buffer.add({"a": np.ones(2, np.float16)})
    clock[0] += MAX_SECONDS - 1
    buffer.add({"b": np.ones(2, np.float16)})
    assert cache.keys("encoder", "images") == set()
    clock[0] += 1
    buffer.add({"c": np.ones(2, np.float16)})
    assert cache.keys("encoder", "images") == {"a", "b", "c"}
    buffer.add({"d": np.ones(2, np.float16)})
    assert cache.keys("encoder", "images") == {"a", "b", "c"}
    buffer.write()
    assert cache.keys("encoder", "images") == {"a", "b", "c", "d"}


def test_large_features_are_written_at_once(tmp_path, clock):
    cache = FeatureCache(tmp_path)
    buffer = CacheWriteBuffer(cache, "encoder", "patches")
    buffer.add({"a": np.ones(MAX_BYTES // 2, np.float16)})
    assert cache.keys("encoder", "patches") == {"a"}


def test_an_empty_buffer_writes_nothing(tmp_path):
    CacheWriteBuffer(FeatureCache(tmp_path / "cache"), "encoder", "images").write()
    assert not (tmp_path / "cache").exists()
