"""A small data set that every head can be measured on in seconds."""

import numpy as np
import pytest

from surelabel.bench import Material
from surelabel.bench.calibrated import Plan, measure
from surelabel.bench.cells import Cells
from surelabel.records import LabelledFeatures

SIZES = {"train": 120, "validation": 60, "test": 80}
NAMES = ["cat", "dog", "sofa"]
PLAN = Plan(epochs=1, steps=0, batch=32, budget=1, seeds=2, longest=3, exact=2, sample=20)


@pytest.fixture(scope="session")
def parts():
    """Vectors, targets that lean on them, and some that nobody looked at."""
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
def material(parts):
    return Material("small", "features:8", **parts)


@pytest.fixture(scope="session")
def plan():
    return PLAN


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="session")
def results(material, folder):
    """Measured once for all that only look at it."""
    return measure(material, PLAN, Cells(folder / "cells"))
