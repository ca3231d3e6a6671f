"""A dozen labelled images and six test images, so that the whole comparison takes seconds."""

import numpy as np
import pytest

from surelabel.bench import ComparisonTask, ResultCache
from surelabel.bench.image_splits import EncoderImageSplits
from surelabel.bench.supervised import SUPERVISED, SupervisedPlan
from surelabel.data import collection
from surelabel.records import LabelledImages

SIZES = {"train": 12, "validation": 1, "test": 6}
PLAN = SupervisedPlan(
    methods=("zero_shot", "tiles", "linear", "multiple_instance_tiles", "ml_decoder"),
    image_counts=(6, 12),
    seeds=2,
    few_seeds=1,
    few_seeds_from=12,
    folds=2,
    resamples=20,
)


@pytest.fixture(scope="session")
def images():
    """The first images of each split, with the six labels that most test images have."""
    splits = {
        name: collection("scenes-80", split=name).take(range(size)) for name, size in SIZES.items()
    }
    columns = np.argsort(-splits["test"].targets.sum(axis=0), kind="stable")[:6]
    few = {
        name: LabelledImages(s.paths, [s.names[c] for c in columns], s.targets[:, columns])
        for name, s in splits.items()
    }
    return EncoderImageSplits(name="few", encoder="tiny-rn", **few)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("supervised")


@pytest.fixture(scope="session")
def results(images, folder):
    """Results that are measured once for all tests that only read them."""
    return SUPERVISED.measure(ComparisonTask(images, PLAN, ResultCache(folder / "cache")))
