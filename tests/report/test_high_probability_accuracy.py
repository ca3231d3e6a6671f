import numpy as np
import pytest

from surelabel.report.high_probability_accuracy import measure_high_probability_accuracy


def test_only_known_decisions_at_80_percent_or_more_are_counted():
    p = np.array([[0.8, 0.9, 0.79], [0.95, 0.9, 0.1]])
    y = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    known = np.array([[True, True, True], [True, False, True]])
    found = measure_high_probability_accuracy(p, y, known)
    assert found.decisions == 3
    assert found.accuracy.value == pytest.approx(2 / 3)
    assert found.mean_probability == pytest.approx((0.8 + 0.9 + 0.95) / 3)


def test_the_accuracy_of_calibrated_probabilities_is_their_mean(judged):
    found = judged(count=800)
    result = measure_high_probability_accuracy(
        found.predictions.probabilities, found.targets, found.known
    )
    assert result.accuracy.value == pytest.approx(result.mean_probability, abs=0.05)


def test_without_such_a_decision_there_is_no_accuracy(judged):
    found = judged(claimed=0.0)
    p = found.predictions.probabilities
    assert measure_high_probability_accuracy(p, found.targets, found.known) is None
