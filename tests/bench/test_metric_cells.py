from functools import partial

import pytest

from surelabel.bench.metric_cells import (
    interval_cell,
    metric_column_title,
    metric_column_value,
    metric_mean_cell,
    noise_floor_suffix,
    percent_column,
    percent_text,
)
from surelabel.bench.rows import ComparisonRow
from surelabel.metrics import ConfidenceInterval

ROW = ComparisonRow("a", {"ece": [0.01, 0.03], "ece_noise_floor": [0.005, 0.007], "map": [0.5]})
TWO_DECIMALS = partial(percent_text, spec=".2f")


def test_a_mean_has_its_deviation_and_its_noise_floor():
    assert metric_mean_cell(ROW, "ece", TWO_DECIMALS) == "2.00 ± 1.41 [0.60]"


def test_one_seed_has_no_deviation_and_a_metric_without_floor_no_brackets():
    assert metric_mean_cell(ROW, "map") == "50.0"
    assert noise_floor_suffix(ROW, "map") == ""


def test_a_metric_that_is_undefined_for_a_seed_is_not_a_number():
    row = ComparisonRow("a", {"map": [0.5, float("nan")]})
    assert metric_mean_cell(row, "map") == "not defined"


def test_a_column_is_the_mean_of_a_row_in_percent():
    assert percent_column("ece")(ROW) == "2.0"
    assert percent_column("ece", "+.2f")(ROW) == "+2.00"


def test_intervals_follow_their_value():
    one, other = ConfidenceInterval(0.1, 0.05, 0.15), ConfidenceInterval(0.1, -0.01, 0.2)
    assert interval_cell(0.1, one) == "10.0 (5.0 to 15.0)"
    assert interval_cell(0.1, one, other) == "10.0 (5.0 to 15.0; -1.0 to 20.0)"


@pytest.mark.parametrize(
    ("metric", "title", "text"),
    [
        ("mean_average_precision", "mAP@y", "12.3"),
        ("mean_average_precision_per_image", "mAP@x", "12.3"),
        ("ace", "ACE", "12.35"),
        ("log_loss", "Log loss", "0.1235"),
    ],
)
def test_a_metric_has_the_title_of_the_paper_and_the_decimals_of_its_unit(metric, title, text):
    assert metric_column_title(metric) == title
    assert metric_column_value(0.12346, metric) == text
