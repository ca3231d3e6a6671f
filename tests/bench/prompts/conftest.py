"""A dozen images with six labels and one tuner, so that the whole comparison takes seconds."""

from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench import ComparisonTask, ResultCache
from surelabel.bench.base_new_splits import BaseNewSplits
from surelabel.bench.prompts import PROMPTS, PromptPlan
from surelabel.data import collection
from surelabel.records import Captions, LabelledImages

SIZES = {"train": 24, "validation": 12, "test": 16}
PLAN = PromptPlan(
    tuners={"coop": 2, "t2i_pal": 1},
    losses=("binary",),
    variants=("none", "CCR"),
    shots=2,
    curve_shots=(2, 3),
    domains=("night",),
    weights=(0.0, 0.1),
    batch_sizes=(32,),
    open_vocabulary_tuners=(),
    epochs={"coop": 2, "t2i_pal": 1},
    resamples=20,
)


@pytest.fixture(scope="session")
def plan():
    return PLAN


@pytest.fixture(scope="session")
def images():
    """The first images with the six labels that are most frequent in all splits."""
    splits = {
        name: collection("scenes-80", split=name).take(range(size)) for name, size in SIZES.items()
    }
    least = np.min([each.targets.sum(axis=0) for each in splits.values()], axis=0)
    columns = np.argsort(-least, kind="stable")[:6]
    few = {
        name: LabelledImages(
            each.paths, [each.names[column] for column in columns], each.targets[:, columns]
        )
        for name, each in splits.items()
    }
    return BaseNewSplits(
        name="few",
        encoder_name="tiny-vit",
        captions=Captions([f"{word} {n}" for n in few["train"].names[:3] for word in ("a", "the")]),
        domains={"night": replace(few["test"], paths=few["test"].paths[::-1])},
        large_train=few["train"],
        **few,
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("prompts")


@pytest.fixture(scope="session")
def results(images, folder):
    """Results that are measured once for all tests that only read them."""
    return PROMPTS.measure(ComparisonTask(images, PLAN, ResultCache(folder / "cache")))
