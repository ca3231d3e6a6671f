from dataclasses import replace

import numpy as np
import pytest

from surelabel import metrics
from surelabel.report.claims import ALONE, NOW, claimed, pairs_a_picture, ranked, sides


@pytest.fixture
def compared(judged):
    """Makes an evaluation beside what an encoder alone would say."""

    def made(count=60, **settings):
        found = judged(count, **settings)
        return replace(found, alone=judged(count, **(settings | {"seed": 7})).predictions)

    return made


def test_as_many_labels_are_shown_as_are_expected(compared):
    for claims in claimed(compared(400)).values():
        means = claims.counts.means
        assert means["shown"] == pytest.approx(means["expected"], rel=0.05)


def test_the_shown_are_the_likeliest_and_right_is_the_share_of_them_that_is_there(compared):
    found = compared()
    claims, p = claimed(found)[NOW], found.predictions.probabilities
    shown = [(r, c) for r in range(60) for c in range(8) if p[r, c] >= claims.threshold]
    assert len(shown) == claims.counts.shown.sum()
    assert claims.right == pytest.approx(sum(found.targets[r, c] for r, c in shown) / len(shown))
    half = sum(p[r, c] >= 0.5 for r in range(60) for c in range(8))
    assert claims.sure == pytest.approx(half / 60)


def test_the_truth_has_no_say_in_what_is_shown(compared):
    found = compared()
    other = replace(found, targets=1 - found.targets)
    assert claimed(found)[NOW].threshold == claimed(other)[NOW].threshold


def test_what_is_unknown_counts_nowhere(compared):
    found = compared(unknown=0.4)
    p = found.predictions.probabilities
    expected = claimed(found)[NOW].counts.means["expected"]
    assert expected == pytest.approx((p * found.known).sum() / 60)


def test_who_has_no_probabilities_claims_nothing(compared):
    found = compared()
    silent = replace(found.alone, logits=None, calibration=None)
    assert list(claimed(replace(found, alone=silent))) == [NOW]
    assert claimed(compared(calibrated=False)) == {}
    assert list(sides(compared(calibrated=False))) == [ALONE, NOW]


def test_both_are_ranked_by_their_scores(compared):
    found = compared(calibrated=False)
    values = ranked(found)["mean_average_precision"]
    precision = metrics.METRICS["mean_average_precision"]
    assert values[NOW] == found.summary["mean_average_precision"]
    scores = found.alone.scores.astype(float)
    assert values[ALONE] == precision(scores, found.targets, found.known)


def test_every_pair_counts_once(compared):
    found = compared()
    together = claimed(found)[NOW].together
    pairs = sum(n * (n - 1) / 2 for n in found.targets.sum(axis=1))
    assert pairs_a_picture(together.present) == pytest.approx(pairs / 60)
    assert pairs_a_picture(np.array([[1.0]])) == 0
