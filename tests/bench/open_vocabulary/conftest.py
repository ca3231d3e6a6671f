"""A dozen images and few rows, so that the whole comparison takes seconds."""

import warnings

import numpy as np
import pytest

from surelabel.bench import ComparisonTask
from surelabel.bench.open_vocabulary import (
    OPEN_VOCABULARY,
    OpenVocabularyPlan,
    OpenVocabularySplits,
)
from surelabel.bench.open_vocabulary import plan as plans
from surelabel.bench.result_cache import ResultCache
from surelabel.data import collection
from surelabel.data.vocabularies import Vocabulary, remove_unseen_vocabulary_classes
from surelabel.records import LabelledImages

PLAN = OpenVocabularyPlan(
    train_candidates=24,
    train=12,
    validation=12,
    test=12,
    seeds=2,
    epochs=1,
    vocabulary_change_images=4,
    added_names=5,
    timed_images=4,
    resamples=20,
)
KEPT = {
    plans.OTHER_METHODS: ("zero-shot", "clip_adapter on the same images"),
    plans.MATCHING: ("average", "optimal transport, knowledge-constrained"),
    plans.PARTS: ("both",),
}


def few(part, names):
    """The first images of a part, with few labels."""
    images = collection("scenes-80", split=part).take(range(24 if part == "train" else 12))
    columns = [images.names.index(name) for name in names]
    return LabelledImages(images.paths, names, images.targets[:, columns])


@pytest.fixture(scope="session")
def archive():
    """The six labels that all parts show most, two of them unseen."""
    parts = [collection("scenes-80", split=part) for part in ("train", "validation", "test")]
    counts = [images.take(range(12)).targets.sum(axis=0) for images in parts]
    common = np.argsort(-np.min(counts, axis=0) - 0.01 * sum(counts), kind="stable")[:6]
    names = [parts[0].names[c] for c in common]
    vocabulary = Vocabulary(seen=tuple(names[1:5]), unseen=(names[0], names[5]))
    train, removed = remove_unseen_vocabulary_classes(few("train", names), vocabulary)
    parts = {part: few(part, names) for part in ("validation", "test")}
    return OpenVocabularySplits(
        name="few",
        domain="photo",
        vocabulary=vocabulary,
        train=train.take(range(12)),
        removed=removed,
        **parts,
    )


@pytest.fixture(scope="session")
def small():
    return PLAN


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("open-vocabulary")


@pytest.fixture(scope="session")
def fewer():
    """Fewer rows, and no costs: these take a process each."""
    with pytest.MonkeyPatch.context() as patch:
        for heading, rows in plans.TABLES.items():
            for title in set(rows) - {plans.REFERENCE, *KEPT.get(heading, ())}:
                patch.delitem(rows, title)
        for title in list(plans.COST_ROWS):
            patch.delitem(plans.COST_ROWS, title)
        yield


@pytest.fixture(scope="session")
def found(archive, place, fewer):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* no positive image")
        return OPEN_VOCABULARY.measure(ComparisonTask(archive, PLAN, ResultCache(place / "cache")))
