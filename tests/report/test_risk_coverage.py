import numpy as np
import pytest

from surelabel.report.risk_coverage import risk_coverage_of, risk_plot


def test_the_last_point_is_the_error_rate_of_all_pictures(judged):
    found = judged(count=50, labels=6)
    wrong = (found.predictions.probabilities >= 0.5) != found.targets.astype(bool)
    assert risk_coverage_of(found).risk[-1] == pytest.approx(wrong.mean())


def test_honest_probabilities_know_when_they_do_not_know(judged):
    found = risk_coverage_of(judged(count=400))
    assert found.risk[199] < 0.8 * found.risk[-1]


def test_the_words_say_the_error_of_the_surest_half_and_of_all(judged):
    found = judged(count=50)
    curve = risk_coverage_of(found)
    told = f"{100 * curve.risk[24]:.2f} % are wrong, of all {100 * curve.risk[-1]:.2f} %"
    assert told in risk_plot(found).alt


def test_scores_have_no_curve(judged):
    assert risk_coverage_of(judged(calibrated=False)) is None
    assert risk_plot(judged(calibrated=False)) is None


def test_a_recognizer_without_an_error_can_be_drawn(judged):
    found = judged()
    found.targets[:] = found.predictions.probabilities >= 0.5
    assert np.all(risk_coverage_of(found).risk == 0)
    assert "of all 0.00 %" in risk_plot(found).alt


def test_a_single_picture_can_be_drawn(judged):
    assert "half" in risk_plot(judged(count=1)).alt
