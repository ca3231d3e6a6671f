import json

from surelabel.data import FeatureCache


def test_the_cache_says_what_it_keeps_and_can_be_emptied(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "kept"))
    FeatureCache(tmp_path / "kept").put("abc", "images", {"key": [1.0, 2.0]})
    found = json.loads(run("cache", "--json").out)
    assert (found["entries"], found["per_fingerprint"]["abc"]["entries"]) == (1, 1)
    assert f"{tmp_path / 'kept'} keeps 1 encoded" in run("cache").out
    assert f"{tmp_path / 'kept'} keeps 0 encoded" in run("cache", "--clear").out
    assert json.loads(run("cache", "--json").out)["entries"] == 0
