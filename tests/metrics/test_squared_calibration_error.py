import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.metrics import (
    brier_decomposition,
    ece,
    squared_calibration_error,
    squared_calibration_error_per_class,
)

GOLDEN = Path(__file__).parents[1] / "golden"
TORCHMETRICS = json.loads((GOLDEN / "binned_errors.json").read_text())["torchmetrics_l2"]
GIVEN = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(GIVEN["p"]), np.array(GIVEN["y"])


@pytest.mark.parametrize("bins", [10, 15])
def test_its_root_equals_what_torchmetrics_calls_l2(bins):
    expected = TORCHMETRICS[str(bins)]
    assert squared_calibration_error(P, Y, bins=bins) ** 0.5 == pytest.approx(expected, rel=1e-12)


def test_is_the_reliability_of_the_brier_score_and_not_below_the_square_of_the_ece():
    assert squared_calibration_error(P, Y) == pytest.approx(
        float(brier_decomposition(P, Y).reliability)
    )
    assert squared_calibration_error(P, Y) >= ece(P, Y) ** 2


def test_each_class_is_computed_separately():
    expected = [squared_calibration_error(P[:, [c]], Y[:, [c]]) for c in range(4)]
    np.testing.assert_allclose(squared_calibration_error_per_class(P, Y), expected, rtol=1e-12)
