"""What happens to old labels when others are asked for beside them, without any retraining."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.backbones.reference import reference_names
from surelabel.bench.cells import Cells
from surelabel.bench.open_vocabulary.pictures import Pictures
from surelabel.bench.open_vocabulary.plan import Plan
from surelabel.bench.open_vocabulary.taught import taught
from surelabel.config import Run
from surelabel.data.vocabularies import VOCABULARIES
from surelabel.data.words import all_words
from surelabel.metrics.calibration_error import ece
from surelabel.metrics.ranking import mean_average_precision
from surelabel.recognizer import Recognizer
from surelabel.records import Array, LabelledImages


def exchanged(
    pictures: Pictures, runs: Sequence[Run], plan: Plan, cells: Cells
) -> list[dict[str, Any]]:
    """One entry a list of names, on the first test pictures; mean over the recognizers.

    Returns:
        ``names`` added, ``met`` of these by the encoder; of the seen labels ``ece`` without and
        ``moved`` with them (the largest change of a recognizer), ``logits`` and ``most``: median
        and 95th percentile of how far their log-odds moved; ``map`` and ``map_before``.

    Raises:
        DataError: a file of ``cells`` is damaged, or none can be written.
    """
    lists = [pictures.vocabulary.unseen, more_names(pictures, plan.added)]
    each = []
    for run in runs:
        key = ("exchange", pictures.identity, run, plan.exchanged, plan.added)
        work = partial(_of, pictures, run, lists, plan.exchanged)
        each.append(cells.value(*key, otherwise=work))
    return [_together(parts) for parts in zip(*each, strict=True)]


def more_names(pictures: Pictures, count: int) -> list[str]:
    """Names that none of the pictures' labels has: other things that Scenes can draw come first."""
    nus = VOCABULARIES["nus-925-81"].names
    pool = [*(word.name for word in all_words()), *reference_names(), *nus]
    taken = {name.casefold() for name in pictures.test.names}
    fresh = dict.fromkeys(name for name in pool if name.casefold() not in taken)
    return list(fresh)[:count]


def _of(
    pictures: Pictures, run: Run, lists: Sequence[Sequence[str]], count: int
) -> list[dict[str, Any]]:
    recognizer = taught(pictures, run)
    test = pictures.test.take(range(min(count, len(pictures.test))))
    labels = recognizer.aligned(test)
    before = _logits(recognizer, test)
    return [_one(recognizer, labels, before, names) for names in lists]


def _one(
    recognizer: Recognizer, labels: LabelledImages, before: Array, names: Sequence[str]
) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that the encoder has never met
        other = recognizer.with_names([*recognizer.names, *names])
    after = _logits(other, labels)[:, : len(recognizer.names)]
    moved = np.abs(after - before)
    return {
        "names": len(names),
        "met": len(names) - len(recognizer.backbone.untrained(names)),
        "ece": ece(expit(before), labels.targets, labels.known),
        "ece_after": ece(expit(after), labels.targets, labels.known),
        "logits": float(np.median(moved)),
        "most": float(np.quantile(moved, 0.95)),
        "map_before": mean_average_precision(before, labels.targets, labels.known),
        "map": mean_average_precision(after, labels.targets, labels.known),
    }


def _logits(recognizer: Recognizer, pictures: LabelledImages) -> Array:
    found = recognizer.predict(pictures).logits
    assert found is not None  # it is calibrated
    return found.astype(np.float64)


def _together(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over recognizers, and the largest change of an ECE."""
    found = {key: float(np.mean([one[key] for one in parts])) for key in parts[0]}
    moved = [one["ece_after"] - one["ece"] for one in parts]
    return found | {"moved": max(moved, key=abs), "names": parts[0]["names"]}
