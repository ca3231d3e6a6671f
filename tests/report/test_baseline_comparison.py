from dataclasses import replace

import numpy as np
import pytest

from surelabel import metrics
from surelabel.report.baseline_comparison import (
    BASELINE,
    RECOGNIZER,
    baseline_comparison_pairs_per_image,
    baseline_comparison_ranking_metrics,
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)


def sources(found):
    return predictions_for_baseline_comparison(found.predictions, found.zero_shot_baseline)


def thresholded(found):
    return threshold_labels_for_baseline_comparison(sources(found), found.targets, found.known)


@pytest.fixture
def compared(judged):
    """Return a function that makes an evaluation with a zero-shot baseline."""

    def made(count=60, **settings):
        found = judged(count, **settings)
        return replace(
            found, zero_shot_baseline=judged(count, **(settings | {"seed": 7})).predictions
        )

    return made


def test_as_many_labels_are_predicted_as_expected(compared):
    for claims in thresholded(compared(400)).values():
        means = claims.counts.means
        assert means["predicted"] == pytest.approx(means["expected"], rel=0.05)


def test_the_predicted_labels_are_the_likeliest_and_precision_is_the_share_of_positives(compared):
    found = compared()
    claims, p = thresholded(found)[RECOGNIZER], found.predictions.probabilities
    shown = [(r, c) for r in range(60) for c in range(8) if p[r, c] >= claims.threshold]
    assert len(shown) == claims.counts.predicted.sum()
    assert claims.precision == pytest.approx(
        sum(found.targets[r, c] for r, c in shown) / len(shown)
    )
    half = sum(p[r, c] >= 0.5 for r in range(60) for c in range(8))
    assert claims.labels_above_half == pytest.approx(half / 60)


def test_the_targets_do_not_change_the_threshold(compared):
    found = compared()
    other = replace(found, targets=1 - found.targets)
    assert thresholded(found)[RECOGNIZER].threshold == thresholded(other)[RECOGNIZER].threshold


def test_unknown_targets_are_not_counted(compared):
    found = compared(unknown=0.4)
    p = found.predictions.probabilities
    expected = thresholded(found)[RECOGNIZER].counts.means["expected"]
    assert expected == pytest.approx((p * found.known).sum() / 60)


def test_sources_without_probabilities_have_no_labels(compared):
    found = compared()
    silent = replace(found.zero_shot_baseline, logits=None, calibration=None)
    assert list(thresholded(replace(found, zero_shot_baseline=silent))) == [RECOGNIZER]
    assert thresholded(compared(calibrated=False)) == {}
    assert list(sources(compared(calibrated=False))) == [BASELINE, RECOGNIZER]


def test_both_are_ranked_by_their_scores(compared):
    found = compared(calibrated=False)
    values = baseline_comparison_ranking_metrics(sources(found), found.targets, found.known)[
        "mean_average_precision"
    ]
    precision = metrics.METRICS["mean_average_precision"]
    assert values[RECOGNIZER] == found.summary["mean_average_precision"]
    scores = found.zero_shot_baseline.scores.astype(float)
    assert values[BASELINE] == precision(scores, found.targets, found.known)


def test_every_pair_counts_once(compared):
    found = compared()
    together = thresholded(found)[RECOGNIZER].cooccurrence
    pairs = sum(n * (n - 1) / 2 for n in found.targets.sum(axis=1))
    assert baseline_comparison_pairs_per_image(together.positive) == pytest.approx(pairs / 60)
    assert baseline_comparison_pairs_per_image(np.array([[1.0]])) == 0
