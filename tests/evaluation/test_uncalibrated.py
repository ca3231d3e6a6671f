import math

import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.evaluation.uncalibrated import UNCALIBRATED_METRICS, evaluate_uncalibrated

KNOWN = np.array([[True, True], [True, False]])
TARGETS = np.array([[1.0, 0.0], [0.0, 0.0]])


def test_only_known_decisions_count_and_the_loss_is_that_of_the_formula():
    found = evaluate_uncalibrated([[2.0, -1.0], [0.5, 9.0]], TARGETS, KNOWN)
    by_hand = [math.log1p(math.exp(-2)), math.log1p(math.exp(-1)), math.log1p(math.exp(0.5))]
    assert found.summary["log_loss"] == pytest.approx(sum(by_hand) / 3)
    assert tuple(found.summary) == UNCALIBRATED_METRICS


def test_log_odds_stay_within_the_limits_of_all_others():
    found = evaluate_uncalibrated([[900.0, -900.0], [0.0, 0.0]], TARGETS, KNOWN)
    assert found.logits[0].tolist() == [40.0, -40.0]
    assert np.isfinite(found.probabilities).all()


def test_another_shape_is_refused():
    with pytest.raises(InputError, match=r"\(2, 2\); got \(2, 3\)"):
        evaluate_uncalibrated(np.zeros((2, 3)), TARGETS, KNOWN)


def test_log_odds_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match=r"got 1 NaN or infinite value\. Pass"):
        evaluate_uncalibrated([[np.inf, 0.0], [0.0, 0.0]], TARGETS, KNOWN)
