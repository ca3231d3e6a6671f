import json
import math
from pathlib import Path

import numpy as np
import pytest

from surelabel.decisions.error_prediction import evaluate_error_prediction

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden/caption_retrieval.json").read_text(encoding="utf-8")
)["uncertainty"]


def test_equals_the_recorded_area_and_the_bins():
    found = evaluate_error_prediction(GOLDEN["u"], GOLDEN["correct"])
    assert found.risk_coverage.area == pytest.approx(GOLDEN["aurc_accuracy_error"])
    expected = GOLDEN["equal_count_10_accuracy"]
    summary = found.as_dict()
    assert summary["bins"]["accuracy"] == pytest.approx(expected["bin_mean"])
    assert summary["bins"]["spearman"] == pytest.approx(expected["spearman"])
    order = np.argsort(GOLDEN["u"])[:40]
    assert summary["risk_at_80"] == pytest.approx(1 - np.mean(np.array(GOLDEN["correct"])[order]))
    json.dumps(summary)


def test_an_uncertainty_that_orders_the_errors_last_is_perfect():
    found = evaluate_error_prediction(range(20), [True] * 15 + [False] * 5)
    assert found.auroc == 1
    assert found.spearman < -0.7
    assert found.risk_coverage.area == found.risk_coverage.optimal_area


def test_few_decisions_have_no_bins_and_one_class_has_no_auroc():
    found = evaluate_error_prediction([0.1, 0.2], [True, True])
    assert found.bins is None
    assert "bins" not in found.as_dict()
    assert math.isnan(found.auroc)
