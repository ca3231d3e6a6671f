"""Searches held against the truth, beside plain loops."""

from math import isnan, prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from surelabel.errors import InputError, NotFitted, UnknownName
from surelabel.evaluation import evaluate_predictions, evaluate_search_precision
from surelabel.records import LabelledImages, Predictions

NAMES = ["cat", "dog", "sofa"]


def without_metrics(logits, targets, known=None, calibration="by hand"):
    """Return what a search reads of an evaluation, without the metrics."""
    logits = np.asarray(logits, np.float32)
    paths = [f"{i}.jpg" for i in range(len(logits))]
    labelled = LabelledImages(paths, NAMES, np.asarray(targets, float), known)
    said = Predictions(paths, NAMES, logits, logits, calibration)
    return SimpleNamespace(predictions=said, targets=labelled.targets, known=labelled.known)


def evaluation(logits, targets, known=None):
    given = without_metrics(logits, targets, known)
    labelled = LabelledImages(given.predictions.paths, NAMES, given.targets, given.known)
    return evaluate_predictions(given.predictions, labelled)


def by_hand(logits, targets, known, k):
    """``cat & !dog`` one image after the other."""
    rows = []
    for i, (z, t, seen) in enumerate(zip(logits, targets, known, strict=True)):
        if seen[0] and seen[1]:
            p = expit(np.float64(z))
            rows.append((-prod([p[0], 1 - p[1]]), -(z[0] - z[1]), i, bool(t[0] and not t[1])))
    rows.sort()
    return [(f"{i}.jpg", right) for *_, i, right in rows[:k]], [right for *_, right in rows]


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_the_answer_is_that_of_a_plain_loop(seed, k):
    random = np.random.default_rng(seed)
    logits = random.normal(size=(9, 3)).round(2).astype(np.float32)
    targets, known = random.integers(0, 2, (9, 3)), random.random((9, 3)) < 0.8
    known[0, 2] = True  # something is known
    found = evaluate_search_precision(without_metrics(logits, targets, known), "cat & !dog", k=k)
    first, truth = by_hand(logits, targets, known, k)
    assert [(h.path, r) for h, r in zip(found.hits, found.is_relevant, strict=True)] == first
    assert (found.images, found.relevant_images) == (len(truth), sum(truth))
    if first:
        assert found.precision == sum(right for _, right in first) / len(first)
        assert found.prevalence == sum(truth) / len(truth)


def test_each_hit_has_the_probability_of_all_and_of_each_label():
    found = evaluate_search_precision(
        evaluation([[1, -2, 0], [-1, 0, 0]], [[1, 0, 1], [0, 1, 0]]), "!dog & cat"
    )
    cat, dog = expit(1), expit(-2)
    assert found.hits[0].probability == pytest.approx(cat * (1 - dog), abs=1e-7)
    assert found.hits[0].terms == pytest.approx({"cat": cat, "dog": dog}, abs=1e-7)
    assert found.query == "!dog & cat"
    assert found.average_precision == 1


def test_a_query_that_no_image_fulfils_has_no_average_precision():
    found = evaluate_search_precision(evaluation([[1, 1, 1]], [[0, 1, 0]]), "cat")
    assert (found.precision, found.prevalence) == (0, 0)
    assert isnan(found.average_precision)


def test_nothing_known_of_a_label_is_undefined_and_no_error():
    found = evaluate_search_precision(
        evaluation([[1, 1, 1]], [[1, 0, 0]], [[False, True, True]]), "cat"
    )
    assert found.hits == ()
    assert isnan(found.precision)
    assert isnan(found.prevalence)


def test_what_cannot_be_searched_for_is_said():
    judged = evaluation([[1, 1, 1]], [[1, 0, 0]])
    with pytest.raises(UnknownName, match=r"'dgo'.* Did you mean 'dog'"):
        evaluate_search_precision(judged, "dgo")
    with pytest.raises(InputError, match=r"k, the number of hits, must be at least 1; got 0"):
        evaluate_search_precision(judged, "dog", k=0)
    with pytest.raises(NotFitted, match="are uncalibrated"):
        evaluate_search_precision(
            without_metrics([[1, 1, 1]], [[1, 0, 0]], calibration=None), "dog"
        )
