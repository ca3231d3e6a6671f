import json

from surelabel.features import FeatureCache


def test_the_cache_shows_its_size_and_can_be_cleared(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "kept"))
    FeatureCache(tmp_path / "kept").put("abc", "images", {"key": [1.0, 2.0]})
    found = json.loads(run("cache", "--json").out)
    assert (found["entries"], found["per_fingerprint"]["abc"]["entries"]) == (1, 1)
    assert f"{tmp_path / 'kept'} contains 1 feature array of images and texts" in run("cache").out
    assert (
        f"{tmp_path / 'kept'} contains 0 feature arrays of images and texts"
        in run("cache", "--clear").out
    )
    assert json.loads(run("cache", "--json").out)["entries"] == 0
