"""A dozen images and few rows, so that the whole comparison takes seconds."""

import warnings

import numpy as np
import pytest

from surelabel.bench import ComparisonTask
from surelabel.bench.label_free import LABEL_FREE, LabelFreePlan, LabelFreeSplits, method_scores
from surelabel.bench.label_free import plan as plans
from surelabel.bench.result_cache import ResultCache
from surelabel.data import collection
from surelabel.records import LabelledImages

PLAN = LabelFreePlan(
    unlabelled=6,
    validation=12,
    test=6,
    probe_images=12,
    student_images=3,
    student_epochs=1,
    student_seeds=2,
    crop_seeds=2,
    crop_counts=(1,),
    reseeded_crop_count=1,
    correction_top_k=(1, 80),
    fusion_margins=(0.1,),
)
ROWS = ("zero-shot", "zero-shot, softmax at a quarter of the scale")
SIZES = {"train": 12, "validation": 12, "test": 6}


def few(images, columns):
    """The same images with the labels of some columns."""
    names = [images.names[c] for c in columns]
    return LabelledImages(images.paths, names, images.targets[:, columns])


@pytest.fixture(scope="session")
def images():
    """The first images of each part, with the six labels that those of the test part show most."""
    whole = {
        part: collection("scenes-80", split=part).take(range(count))
        for part, count in SIZES.items()
    }
    columns = np.argsort(-whole["test"].targets.sum(axis=0), kind="stable")[:6]
    parts = {part: few(images, columns) for part, images in whole.items()}
    mains = parts["test"].targets.argmax(axis=1)
    return LabelFreeSplits(name="few", encoder="tiny-rn", **parts, main_columns=mains)


@pytest.fixture(scope="module")
def small():
    return PLAN


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("label-free")


@pytest.fixture(scope="module")
def fewer_rows():
    """Fewer rows and students in every module that reads the plan's tables, and one timed image."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method_scores, "TIMED_IMAGES", 1)
        for table, kept in (
            (plans.ONE_PASS_METHODS, ROWS),
            (plans.MULTI_PASS_METHODS, ("tiles",)),
            (plans.STUDENT_VARIANTS, ("default", "no overlays")),
        ):
            for title in [title for title in table if title not in kept]:
                patch.delitem(table, title)
        yield


@pytest.fixture(scope="module")
def measured(images, folder, fewer_rows):
    with pytest.warns(UserWarning, match="tailor makes only"):  # noqa: PT031
        warnings.filterwarnings("ignore", message=".* no positive image")
        return LABEL_FREE.measure(ComparisonTask(images, PLAN, ResultCache(folder / "cache")))
