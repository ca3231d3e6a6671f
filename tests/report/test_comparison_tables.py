import numpy as np
import pytest

from surelabel.counts import format_count
from surelabel.evaluation import compare_predictions
from surelabel.records import LabelledImages, Predictions
from surelabel.report.comparison_tables import (
    better_model,
    comparison_label_rows,
    comparison_metric_rows,
    comparison_sentences,
    format_metric_difference,
    label_difference_sentences,
)


def test_sentences_state_the_data_and_all_that_was_left_out(compared):
    text = " ".join(comparison_sentences(compared(left_out=True)))
    for part in (
        "A: one. B: two.",
        "80 images, 6 labels.",
        "Calibration of A: platt.",
        "2 annotated images without a prediction of A; 1 annotated image without a prediction of B",
        "3 images with predictions and without annotations; 1 label of A only (fox)",
        "paired bootstrap intervals over images, computed from 30 resamples",
    ):
        assert part in text
    assert "ranking" not in text


def test_one_image_has_neither_intervals_nor_tested_labels():
    targets = LabelledImages(["a.jpg"], ["dog"], [[1]])
    one = Predictions(["a.jpg"], ["dog"], np.ones((1, 1), np.float32))
    found = compare_predictions(one, one, targets)
    assert "one image cannot be resampled" in comparison_sentences(found)[-1]
    untested = (
        "1 label with fewer than 5 positive or fewer than 5 negative targets cannot be tested."
    )
    assert label_difference_sentences(found) == [untested]


def test_uncalibrated_models_are_named(compared):
    found = compared(calibrations=("platt", None))
    assert "because B has no calibrated probabilities" in " ".join(comparison_sentences(found))
    assert len(comparison_metric_rows(found)[1]) == 6


def test_each_row_of_metrics_has_values_difference_and_the_better_model(compared):
    found = compared()
    header, rows = comparison_metric_rows(found)
    assert len(rows) == len(found.metrics)
    assert len(comparison_metric_rows(found, main_only=True)[1]) == 13
    (row,) = [row for row in rows if row[0] == "mAP"]
    values = found.metrics["mean_average_precision"]
    assert row[1:4] == [
        f"{100 * values.first:.1f} %",
        f"{100 * values.second:.1f} %",
        f"{100 * values.difference.value:+.1f}",
    ]
    assert dict(zip(header, row, strict=True))["unit"] == "points"
    assert {row[-1] for row in rows if row[0] in ("mAP", "Log loss")} == {"B"}


@pytest.mark.parametrize(
    ("metric", "low", "high", "better"),
    [
        ("mean_average_precision", 0.1, 0.2, "B"),
        ("mean_average_precision", -0.2, -0.1, "A"),
        ("ece", -0.2, -0.1, "B"),
        ("ece", 0.1, 0.2, "A"),
        ("ece", 0.0, 0.2, "–"),
        ("ece", float("nan"), float("nan"), "–"),
    ],
)
def test_the_better_model_depends_on_the_direction_of_the_metric(metric, low, high, better):
    assert better_model(metric, low, high) == better


def test_an_undefined_difference_is_named():
    assert format_metric_difference(float("nan"), "%") == "not defined"


def test_labels_are_counted_and_marked_as_in_the_result(compared):
    found = compared()
    sentences = label_difference_sentences(found)
    for sentence, labels in zip(sentences, found.labels.values(), strict=False):
        count = format_count(int(labels.is_different.sum()), "label")
        assert f"B is significantly better for {count}, A for 0 labels." in sentence
    assert "1 label with fewer than 5 positive or fewer than 5 negative targets" in " ".join(
        sentences
    )
    header, rows = comparison_label_rows(found)
    marks = sum(cell.endswith("*") for row in rows for cell in row[2:])
    assert marks == sum(labels.is_different.sum() for labels in found.labels.values()) > 0
    assert [len(row) for row in rows] == [len(header)] * 6
    is_any = np.any([labels.is_different for labels in found.labels.values()], axis=0)
    names = {row[0] for row in comparison_label_rows(found, different_only=True)[1]}
    assert names == {name for name, flag in zip(found.names, is_any, strict=True) if flag}
