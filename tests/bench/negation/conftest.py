"""The bundled images with one encoder and few settings, so that the comparison takes seconds."""

from dataclasses import replace

import pytest

from surelabel.bench import ComparisonTask, ResultCache
from surelabel.bench.negation import NEGATION, load_negation_scenes
from surelabel.recognizer import Recognizer

PLAN = replace(
    NEGATION.quick,
    validation=100,
    test=150,
    min_both=3,
    resamples=10,
    weights=(0.0, 0.25, 0.5),
    steps=(5,),
    start_weights=(1.0,),
    conjunctions=10,
    min_pair_images=2,
    floor_resamples=1,
)


@pytest.fixture(scope="session")
def plan():
    return PLAN


@pytest.fixture(scope="session")
def splits():
    return load_negation_scenes(["tiny-vit"], PLAN, quick=True)


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return ResultCache(tmp_path_factory.mktemp("negation") / "cache")


@pytest.fixture(scope="session")
def results(splits, cache):
    """Results that are measured once for all tests that only read them."""
    return NEGATION.measure(ComparisonTask(splits, PLAN, cache))


@pytest.fixture(scope="session")
def predictions(splits):
    """Predictions of the test images: zero-shot, and after the calibration."""
    recognizer = Recognizer.zero_shot("tiny-vit", list(splits.test.names))
    zero_shot = recognizer.predict(splits.test)
    return zero_shot, recognizer.calibrate(splits.validation).predict(splits.test)
