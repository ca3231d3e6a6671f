"""Measure how metrics of the seen classes change if labels are added to a recognizer."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.bench.open_vocabulary.fitted_rows import SCORES_VERSION, fit_row_on_seen_classes
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits, OpenVocabularyTask
from surelabel.config import Run
from surelabel.data.scene_words import all_scene_words
from surelabel.data.vocabularies import VOCABULARIES
from surelabel.encoders.prompts.reference_list import reference_names
from surelabel.metrics.ece import ece
from surelabel.metrics.mean_average_precision import mean_average_precision
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledImages


def measure_vocabulary_change(
    runs: Sequence[Run], task: OpenVocabularyTask
) -> list[dict[str, Any]]:
    """Measure the effect of added labels on the seen classes, averaged over the recognizers.

    Args:
        runs: Runs of the recognizers, one for each seed.
        task: Images, plan and cache. The metrics use the first ``plan.vocabulary_change_images``
            test images.

    Returns:
        One entry for each list of added labels. ``names`` is the number of added labels.
        ``names_with_trained_tokens`` is the number of added labels whose tokens occurred in the
        training of the encoder. The other values are for the seen classes: ``ece_before``,
        ``ece_after``, ``map_before``, ``map_after``, the ECE change with the largest absolute value
        among the recognizers (``ece_change``), and two quantiles of the absolute change of log-odds
        (``logit_change_median``, ``logit_change_95th_percentile``).

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images, plan = task.dataset, task.plan
    name_lists = [
        images.vocabulary.unseen,
        added_names_of_vocabulary_change(images, plan.added_names),
    ]
    n_images = plan.vocabulary_change_images
    entries_by_run = []
    for run in runs:
        sizes = (n_images, plan.added_names)
        key = ("vocabulary change", SCORES_VERSION, images.fingerprint, run, *sizes)
        compute = partial(_vocabulary_change_of_run, images, run, name_lists, n_images)
        entries_by_run.append(task.cache.load_or_compute(*key, compute=compute))
    return [_mean_vocabulary_change(entries) for entries in zip(*entries_by_run, strict=True)]


def added_names_of_vocabulary_change(images: OpenVocabularySplits, count: int) -> list[str]:
    """Return names that are not labels of the images, starting with objects of the scene generator.

    Args:
        images: Images whose labels are excluded.
        count: Maximum number of names.
    """
    nus = VOCABULARIES["nus-925-81"].names
    pool = [*(word.name for word in all_scene_words()), *reference_names(), *nus]
    used = {name.casefold() for name in images.test.names}
    unused = dict.fromkeys(name for name in pool if name.casefold() not in used)
    return list(unused)[:count]


def _vocabulary_change_of_run(
    images: OpenVocabularySplits, run: Run, name_lists: Sequence[Sequence[str]], n_images: int
) -> list[dict[str, Any]]:
    """Return the metrics of one recognizer, one entry for each list of added labels."""
    recognizer = fit_row_on_seen_classes(images, run)
    test = images.test.take(range(min(n_images, len(images.test))))
    aligned = recognizer.align_labels(test)
    logits_before = _predict_vocabulary_change_logits(recognizer, test)
    return [
        _vocabulary_change_of_added_names(recognizer, aligned, logits_before, names)
        for names in name_lists
    ]


def _vocabulary_change_of_added_names(
    recognizer: Recognizer, images: LabelledImages, before: Array, names: Sequence[str]
) -> dict[str, Any]:
    """Return the metrics of the seen classes before and after labels are added."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warnings about labels with untrained tokens
        extended = recognizer.with_names([*recognizer.names, *names])
    after = _predict_vocabulary_change_logits(extended, images)[:, : len(recognizer.names)]
    change = np.abs(after - before)
    untrained = recognizer.encoder.labels_with_untrained_tokens(names)
    return {
        "names": len(names),
        "names_with_trained_tokens": len(names) - len(untrained),
        "ece_before": ece(expit(before), images.targets, images.known),
        "ece_after": ece(expit(after), images.targets, images.known),
        "logit_change_median": float(np.median(change)),
        "logit_change_95th_percentile": float(np.quantile(change, 0.95)),
        "map_before": mean_average_precision(before, images.targets, images.known),
        "map_after": mean_average_precision(after, images.targets, images.known),
    }


def _predict_vocabulary_change_logits(recognizer: Recognizer, images: LabelledImages) -> Array:
    logits = recognizer.predict(images).logits
    assert logits is not None  # the recognizer is calibrated
    return logits.astype(np.float64)


def _mean_vocabulary_change(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over recognizers, and the ECE change with the largest absolute value."""
    means = {key: float(np.mean([entry[key] for entry in entries])) for key in entries[0]}
    ece_changes = [entry["ece_after"] - entry["ece_before"] for entry in entries]
    return means | {"ece_change": max(ece_changes, key=abs), "names": entries[0]["names"]}
