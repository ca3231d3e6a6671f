"""A few images with captions, so that the whole comparison takes seconds."""

import pytest

from surelabel.bench import ComparisonTask, ResultCache
from surelabel.bench.base_new_splits import BaseNewSplits
from surelabel.bench.similarity import SIMILARITY, CaptionSplits, SimilarityPlan
from surelabel.data import collection
from surelabel.records import Captions

SIZES = {"train": 20, "validation": 12, "test": 16}
PLAN = SimilarityPlan(
    images=20,
    validation=12,
    test=16,
    domains=("night",),
    seeds=2,
    ablation_seeds=1,
    noise_ratios=(0.0, 0.5),
    learning_rates=(0.0005, 0.002),
    batch_size=32,
    sensitivity={"gamma": (0.0,)},
    taggers=("zero_shot",),
    epochs=1,
    resamples=20,
)


@pytest.fixture(scope="session")
def splits():
    """The first images of each split; the test images also stand for the other domain."""
    pairs = {
        name: collection("scenes-80", split=name, captions=True).take(range(size))
        for name, size in SIZES.items()
    }
    labelled = {
        name: collection("scenes-80", split=name).take(range(size)) for name, size in SIZES.items()
    }
    return CaptionSplits(
        name="few",
        **pairs,
        domains={"night": pairs["validation"]},
        labelled=BaseNewSplits(
            name="few",
            encoder_name="tiny-vit",
            captions=Captions(["a lion"]),
            domains={"night": labelled["test"]},
            large_train=labelled["train"],
            **labelled,
        ),
    )


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return ResultCache(tmp_path_factory.mktemp("similarity") / "cache")


@pytest.fixture(scope="session")
def results(splits, cache):
    """Results that are measured once for all tests that only read them."""
    return SIMILARITY.measure(ComparisonTask(splits, PLAN, cache))
