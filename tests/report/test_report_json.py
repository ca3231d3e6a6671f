import json
from dataclasses import replace

import numpy as np

from surelabel.metrics import reliability_bins
from surelabel.records import SkippedImage
from surelabel.report.baseline_comparison import (
    BASELINE,
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)
from surelabel.report.bin_sensitivity import calibration_errors_for_bin_sensitivity
from surelabel.report.high_probability_accuracy import measure_high_probability_accuracy
from surelabel.report.report_json import report_as_json
from surelabel.report.search_results import RetrievalResults


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def read(found, before=None, retrieval=None):
    return json.loads(report_as_json(found, before, retrieval), parse_constant=refuse)


def test_what_is_undefined_is_null(judged):
    found = judged(names=["lion", "bear"])
    found.per_class["average_precision"][:] = [0.5, np.nan]
    found.summary["brier_skill"] = float("-inf")
    held = read(found)
    assert held["per_class"]["average_precision"] == [0.5, None]
    assert held["summary"]["brier_skill"] is None


def test_every_number_comes_back_exactly(judged):
    found, before = judged(), judged(claimed=2.0)
    held = read(found, before)
    assert held["summary"] == found.summary
    assert held["noise_floor"] == found.noise_floor
    assert held["before"]["summary"] == before.summary
    assert held["names"] == list(found.predictions.names)
    assert held["images"] == 60
    assert held["decisions"] == 480
    assert sum(held["reliability"]["counts"]) == 480
    assert held["per_class"]["positives"] == found.targets.sum(axis=0).tolist()
    for metric, values in found.per_class.items():
        assert np.array_equal(np.array(held["per_class"][metric], float), values, equal_nan=True)


def test_scores_have_no_reliability(judged):
    held = read(judged(calibrated=False))
    assert held["reliability"] is None
    assert held["calibration"] is None
    assert held["before"] is None
    for part in (
        "uncalibrated",
        "risk_coverage",
        "calibration_budget",
        "bin_sensitivity",
        "retrieval",
        "zero_shot_baseline",
        "labels_per_image",
        "operating_points",
        "decision_costs",
        "high_probability_accuracy",
    ):
        assert held[part] is None
    assert held["intervals"] == {}


def test_every_part_of_the_page_is_in_the_numbers(whole):
    found = whole(labels=3)
    retrieval = RetrievalResults((1, 2), (0.5, float("nan")), (3, 0), (0, 9))
    held = read(found, retrieval=retrieval)
    decisions = found.predictions.probabilities, found.targets, found.known
    sources = predictions_for_baseline_comparison(found.predictions, found.zero_shot_baseline)
    labels_by_source = threshold_labels_for_baseline_comparison(sources, found.targets, found.known)
    assert held["uncalibrated"]["summary"] == found.uncalibrated.summary
    assert held["uncalibrated"]["reliability"]["bins"].startswith("15 of equal width")
    assert held["intervals"]["ece"]["value"] == found.intervals["ece"].value
    assert held["calibration_budget"]["sizes"] == [25, 50]
    assert held["calibration_budget"]["sufficient_size"] == found.calibration_budget.sufficient_size
    assert held["risk_coverage"]["coverage"][-1] == 1
    accuracy = measure_high_probability_accuracy(*decisions)
    assert held["high_probability_accuracy"]["accuracy"]["value"] == accuracy.accuracy.value
    assert held["operating_points"]["points"][0]["option"] == "--threshold 0.5"
    assert len(held["precision_recall"]["precision"]) == 100
    assert held["decision_costs"][0]["miss_cost"] == 0.1
    assert held["bin_sensitivity"] == calibration_errors_for_bin_sensitivity(*decisions)
    assert held["zero_shot_baseline"]["calibration"] == found.zero_shot_baseline.calibration
    assert (
        held["labels_per_image"]["zero-shot baseline"]["per_image"]
        == labels_by_source[BASELINE].counts.means
    )
    assert sum(held["labels_per_image"]["this recognizer"]["histograms"]["positive"]) == 120
    assert np.shape(held["reliability_per_class"]["consistency_low"]) == (3, 15)
    assert held["retrieval"]["mean_average_precision"] == [0.5, None]


def test_the_uncalibrated_bins_are_those_of_the_uncalibrated_logits(whole):
    found = whole(unknown=0.2)
    p = 1 / (1 + np.exp(-found.uncalibrated.logits))
    expected = reliability_bins(p, found.targets, found.known)
    assert np.allclose(read(found)["uncalibrated"]["reliability"]["counts"], expected.counts)


def test_the_bins_of_each_label_are_those_of_its_column(judged):
    found = judged(labels=3, unknown=0.3)
    p, bins = found.predictions.probabilities, read(found)["reliability_per_class"]
    for c in range(3):
        column = reliability_bins(p[:, [c]], found.targets[:, [c]], found.known[:, [c]], bins=15)
        assert bins["counts"][c] == column.counts.tolist()
        accuracy = np.array(bins["accuracy"][c], dtype=float)
        assert np.allclose(accuracy, column.accuracy, equal_nan=True)


def test_skipped_images_and_examples_are_named(judged):
    found = judged()
    skipped = [SkippedImage("bad.jpg", "empty file")]
    held = read(replace(found, predictions=replace(found.predictions, skipped=skipped)))
    assert held["skipped"] == [{"path": "bad.jpg", "reason": "empty file"}]
    assert [e["path"] for e in held["worst"]] == [e.path for e in found.worst_examples]
    assert held["worst"][0]["tags"][0]["label"] == found.worst_examples[0].labels[0].name
