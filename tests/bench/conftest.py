"""A small dataset on which every head is measured in seconds."""

import numpy as np
import pytest

from surelabel.bench import ComparisonTask, FeatureSplits
from surelabel.bench.calibrated import CALIBRATED, CalibrationPlan
from surelabel.bench.result_cache import ResultCache
from surelabel.records import LabelledFeatures

SIZES = {"train": 120, "validation": 60, "test": 80}
NAMES = ["cat", "dog", "sofa"]
PLAN = CalibrationPlan(
    epochs=1,
    min_steps=0,
    batch_size=32,
    settings_per_head=1,
    seeds=2,
    max_query_length=3,
    max_exact_length=2,
    queries_per_shape=20,
)


@pytest.fixture(scope="session")
def parts():
    """Features, targets that depend on them, and some unknown targets."""
    random, direction = np.random.default_rng(7), np.random.default_rng(8).normal(size=(8, 3))
    found = {}
    for name, n in SIZES.items():
        features = random.normal(size=(n, 8)).astype(np.float32)
        chance = 1 / (1 + np.exp(1 - features @ direction))
        targets = (random.random((n, 3)) < chance).astype(float)
        targets[random.random((n, 3)) < 0.05] = np.nan
        found[name] = LabelledFeatures(features, NAMES, targets)
    return found


@pytest.fixture(scope="session")
def dataset(parts):
    return FeatureSplits("small", "features:8", **parts)


@pytest.fixture(scope="session")
def plan():
    return PLAN


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="session")
def results(dataset, folder):
    """Results that are measured once for all tests that only read them."""
    return CALIBRATED.measure(ComparisonTask(dataset, PLAN, ResultCache(folder / "cache")))
