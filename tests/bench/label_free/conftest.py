"""A dozen pictures and few rows, so that the whole comparison takes seconds."""

import numpy as np
import pytest

from surelabel.bench.cells import Cells
from surelabel.bench.label_free import Pictures, Plan
from surelabel.bench.label_free import plan as plans
from surelabel.bench.label_free.all import measure
from surelabel.data import collection
from surelabel.records import LabelledImages

PLAN = Plan(
    unlabelled=6,
    validation=12,
    test=6,
    labelled=12,
    taught=3,
    epochs=1,
    students=2,
    seeds=2,
    crops=(1,),
    redrawn=1,
    corrected=(1, 80),
    margins=(0.1,),
)
ROWS = ("zero-shot", "zero-shot, softmax at a quarter of the scale")
SIZES = {"train": 12, "validation": 12, "test": 6}


def few(part, count):
    """The first pictures of a part, with the six labels that they show most."""
    images = collection("scenes-80", split=part).take(range(count))
    shown = collection("scenes-80", split="test").take(range(6)).targets.sum(axis=0)
    columns = np.argsort(-shown, kind="stable")[:6]
    names = [images.names[c] for c in columns]
    return LabelledImages(images.paths, names, images.targets[:, columns])


@pytest.fixture(scope="module")
def pictures():
    parts = {part: few(part, count) for part, count in SIZES.items()}
    mains = parts["test"].targets.argmax(axis=1)
    return Pictures("few", "tiny-rn", **parts, mains=mains)


@pytest.fixture(scope="module")
def small():
    return PLAN


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("label-free")


@pytest.fixture(scope="module")
def fewer_rows():
    """Fewer rows and students in every module that reads the plan's tables."""
    with pytest.MonkeyPatch.context() as patch:
        for table, kept in (
            (plans.ONE_PASS, ROWS),
            (plans.SEVERAL_PASSES, ("tiles",)),
            (plans.STUDENTS, ("as it is", "no pictures sewn on")),
        ):
            for title in [title for title in table if title not in kept]:
                patch.delitem(table, title)
        yield


@pytest.fixture(scope="module")
def measured(pictures, folder, fewer_rows):
    with pytest.warns(UserWarning, match="tailor makes only"):
        return measure(pictures, PLAN, Cells(folder / "cells"))
