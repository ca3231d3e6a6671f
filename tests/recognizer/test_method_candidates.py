import numpy as np
import pytest

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.features import FeatureCache
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer
from surelabel.recognizer.method_candidates import (
    SampleCache,
    selectable_methods,
    time_method_candidates,
)
from surelabel.recognizer.vector_normalization import encoder_with_fitted_normalization
from surelabel.records import LabelledFeatures

NAMES = ["lion", "guitar", "car"]


@pytest.fixture
def cache(tmp_path):
    return FeatureCache(tmp_path / "cache")


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-rn")


def recognizers(encoder, cache, *methods):
    for method in methods:
        run = load_run(overrides=[f"method.name={method}", "encoder.name=tiny-rn"])
        yield Recognizer(run, NAMES, encoder=encoder, cache=cache)


def test_methods_that_train_or_run_a_tower_in_each_step_are_not_compared():
    selectable = selectable_methods()
    assert {"zero_shot", "tiles", "linear", "clip_adapter"} <= set(selectable) <= METHODS.keys()
    never = {"finetune", "cocoop", "tailor", "tai_plus", "t2i_pal", "variational", "coop", "tai"}
    assert not never & set(selectable)
    assert len(set(selectable)) == len(selectable)


def test_features_that_two_methods_share_are_timed_once_and_nothing_is_cached(encoder, cache):
    images = collection("scenes-80", split="test").take(range(4))
    candidates, left_out = time_method_candidates(
        images,
        recognizers(encoder, cache, "tiles", "zero_shot"),
        folds=2,
        minutes=5,
        max_passes=None,
    )
    assert [c.recognizer.run.method.name for c in candidates] == ["zero_shot", "tiles"]
    assert [c.encoder_passes for c in candidates] == [1, 14]
    assert candidates[0].expected_seconds < candidates[1].expected_seconds
    assert not left_out
    assert not cache.keys(encoder.fingerprint, "images")


def test_what_does_not_fit_into_memory_is_left_out(encoder, cache, monkeypatch):
    monkeypatch.setattr("surelabel.recognizer.method_candidates.MAX_FEATURE_BYTES", 100)
    images = collection("scenes-80", split="test").take(range(4))
    candidates, left_out = time_method_candidates(
        images,
        recognizers(encoder, cache, "linear", "zero_shot"),
        folds=2,
        minutes=5,
        max_passes=None,
    )
    assert [c.recognizer.run.method.name for c in candidates] == ["zero_shot"]  # block by block
    assert left_out["linear"].startswith("needs 0 GiB of memory for features")


TREES = ["extra_trees", "gradient_boosting"]


def candidates_of_vectors(source, minutes, encoder="features:4"):
    loaded = encoder_with_fitted_normalization(load_encoder(encoder), source)
    recognizers = [
        Recognizer(load_run(overrides=[f"method.name={method}"]), NAMES, encoder=loaded)
        for method in TREES
    ]
    return time_method_candidates(source, recognizers, folds=4, minutes=minutes, max_passes=None)


def vectors(width=4):
    features = np.random.default_rng(0).normal(size=(80, width))
    return LabelledFeatures(features, NAMES, features[:, :3] > 0)


def test_a_fit_at_once_is_timed_on_the_images_of_all_other_folds(monkeypatch):
    shapes = list[tuple[int, ...]]()

    def seconds(self, features, targets, known, seed):
        shapes.append((*features.pooled.shape, *targets.shape, *known.shape))
        return 30.0 if type(self) is METHODS["extra_trees"] else 31.0

    for method in TREES:
        monkeypatch.setattr(METHODS[method], "expected_fit_seconds", seconds)
    candidates, left_out = candidates_of_vectors(vectors(), minutes=2.05)
    assert shapes == [(60, 4, 60, 3, 60, 3)] * 2
    assert [candidate.recognizer.run.method.name for candidate in candidates] == ["extra_trees"]
    assert candidates[0].expected_seconds == pytest.approx(120, abs=1)
    assert left_out == {
        "gradient_boosting": "takes about 3 minutes, more than the maximum of 2.05 minutes"
    }


def test_trees_are_compared_for_ready_made_vectors_only():
    candidates, left_out = candidates_of_vectors(vectors(128), 5, encoder="tiny-rn")
    assert not candidates
    message = "The comparison includes {} only for precomputed vectors; got the encoder tiny-rn"
    assert left_out == {method: message.format(method) for method in TREES}
    candidates, left_out = candidates_of_vectors(vectors(), 5)
    assert not left_out
    assert all(0 < candidate.expected_seconds < 300 for candidate in candidates)


def test_a_sample_cache_reads_the_cache_and_keeps_new_features_to_itself(cache):
    cache.put("encoder", "images", {"old": np.ones(2)})
    sample = SampleCache(cache)
    sample.put("encoder", "images", {"new": np.zeros(2)})
    other = sample.copy()
    other.put("encoder", "images", {"newer": np.zeros(2)})
    assert sample.keys("encoder", "images") == {"old", "new"}
    assert other.get("encoder", "images", ["old", "newer", "none"]).keys() == {"old", "newer"}
    assert cache.keys("encoder", "images") == {"old"}
