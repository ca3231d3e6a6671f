import numpy as np

from surelabel.evaluation import CalibrationBudget
from surelabel.report.calibration_budget import (
    describe_calibration_budget_in_report,
    plot_calibration_budget,
)


def budget(errors, noise_floor=0.02):
    errors = np.array(errors, float)
    return CalibrationBudget((25, 50, 100), errors, np.full_like(errors, 0.2), noise_floor, 200)


def test_the_sufficient_number_of_images_is_compared_with_the_largest():
    told = describe_calibration_budget_in_report(budget([[0.05], [0.021], [0.02]]))
    assert told.startswith(
        "About 50 annotated images are enough: the ECE is 2.10 points with 50 images and 2.00 "
    )
    assert "noise floor" not in told


def test_an_error_that_more_images_cannot_reduce_is_reported():
    told = describe_calibration_budget_in_report(budget([[0.05], [0.05], [0.05]], noise_floor=0.01))
    assert "About 25" in told
    assert "The noise floor is 1.00 points. To reduce the remaining calibration error" in told


def test_when_the_last_doubling_still_helps_it_says_so():
    told = describe_calibration_budget_in_report(budget([[0.05], [0.04], [0.03]]))
    assert "100 annotated images may be too few" in told
    assert "3.00 points (4.00 points with 50 images)" in told


def test_too_few_positives_are_reported():
    nothing = budget([[np.nan]] * 3, noise_floor=np.nan)
    assert "too few positive or too few negative targets" in describe_calibration_budget_in_report(
        nothing
    )
    assert "25 images: ECE not defined, log" in plot_calibration_budget(nothing).alt


def test_a_single_size_has_an_answer():
    told = describe_calibration_budget_in_report(
        CalibrationBudget((25,), np.array([[0.03]]), np.array([[0.2]]), 0.01, 100)
    )
    assert told.startswith("25 annotated images may be too few: the ECE is 3.00 points,")


def test_undefined_draws_are_counted():
    plot = plot_calibration_budget(budget([[np.nan, 0.05], [0.04, 0.04], [0.03, 0.03]]))
    assert "without positive or without negative targets are omitted (1)" in plot.caption
    assert "25 images: ECE 5.00 points" in plot.alt
