import json
import math

import numpy as np
import pytest

from surelabel.evaluation import LabelDifferences, compare_predictions
from surelabel.evaluation.comparison_result import values_of_label
from surelabel.records import LabelledImages, Predictions


@pytest.fixture(scope="module")
def comparison():
    random = np.random.default_rng(0)
    targets = random.integers(0, 2, (40, 2))
    paths, names = [f"{row}.jpg" for row in range(40)], ["dog", "cat"]
    logits = [(s * (targets - 0.5) + random.normal(size=(40, 2))).astype("f4") for s in (1, 2)]
    first, second = (Predictions(paths, names, x, x, "platt", "a model") for x in logits)
    labelled = LabelledImages(paths, names, targets)
    return compare_predictions(first, second, labelled, titles=("one", "two"), resamples=20)


def test_the_summary_shows_the_main_metrics_with_intervals(comparison):
    text = repr(comparison)
    assert text.startswith("Comparison(first='one', second='two', images=40, labels=2)")
    interval = comparison.metrics["log_loss"].difference
    (line,) = [line for line in text.splitlines() if "log_loss" in line]
    assert line.endswith(f"{interval.low:.4g} to {interval.high:.4g}")
    assert "<td>log_loss</td>" in comparison._repr_html_()
    assert len(text.splitlines()) <= 6


def test_the_dictionary_has_all_values_and_can_be_written_as_json(comparison):
    held = json.loads(json.dumps(comparison.as_dict()))
    assert held["first"] == {"name": "one", "calibration": "platt"}
    assert held["metrics"].keys() == comparison.metrics.keys()
    assert [row["label"] for row in held["by_label"]] == ["dog", "cat"]
    for metric, labels in comparison.labels.items():
        values = [row[metric]["difference"] for row in held["by_label"]]
        assert values == labels.difference.tolist()


def test_only_small_adjusted_p_values_mark_a_difference():
    values = np.zeros(4)
    p_values = np.array([0.05, 0.0501, np.nan, 0.0])
    labels = LabelDifferences(values, values, values, values, values, p_values)
    assert labels.is_different.tolist() == [True, False, False, True]
    assert values_of_label(labels, 0)["is_different"] is True
    assert math.isnan(values_of_label(labels, 2)["adjusted_p_values"])
