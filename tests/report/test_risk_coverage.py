import numpy as np
import pytest

from surelabel.decisions import compute_risk_coverage
from surelabel.report.plots import calibration_section_plots
from surelabel.report.risk_coverage import plot_risk_coverage


def curve_of(found):
    return compute_risk_coverage(found.predictions.logits, found.targets, found.known)


def test_the_last_point_is_the_error_rate_of_all_images(judged):
    found = judged(count=50, labels=6)
    wrong = (found.predictions.probabilities >= 0.5) != found.targets.astype(bool)
    assert curve_of(found).risk[-1] == pytest.approx(wrong.mean())


def test_the_least_uncertain_images_of_calibrated_probabilities_have_fewer_errors(judged):
    found = curve_of(judged(count=400))
    assert found.risk[199] < 0.8 * found.risk[-1]


def test_the_words_say_the_error_of_the_least_uncertain_half_and_of_all(judged):
    found = judged(count=50)
    curve = curve_of(found)
    assert (
        f"is {100 * curve.risk[24]:.2f} % on the least uncertain half"
        in plot_risk_coverage(curve).alt
    )
    assert f"and {100 * curve.risk[-1]:.2f} % on all images" in plot_risk_coverage(curve).alt


def test_scores_have_no_curve(judged):
    assert calibration_section_plots(judged(calibrated=False), None) == []


def test_a_recognizer_without_an_error_can_be_drawn(judged):
    found = judged()
    found.targets[:] = found.predictions.probabilities >= 0.5
    assert np.all(curve_of(found).risk == 0)
    assert "and 0.00 % on all images" in plot_risk_coverage(curve_of(found)).alt


def test_a_single_image_can_be_drawn(judged):
    assert "half" in plot_risk_coverage(curve_of(judged(count=1))).alt
