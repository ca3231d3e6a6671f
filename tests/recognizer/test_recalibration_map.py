import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.recognizer.recalibration_map import RecalibrationMap


def test_maps_are_applied_one_after_the_other():
    z = np.random.default_rng(0).normal(size=(5, 3))
    first = RecalibrationMap(0.5, 1.0, (0.1, 0.2, 0.3))
    label_shift = np.array([1.0, -1.0, 0.0])
    both = first.followed_by(2.0, -3.0, tuple(label_shift))
    np.testing.assert_allclose(both.logits(z), 2.0 * (first.logits(z) + label_shift) - 3.0)
    without = RecalibrationMap(0.5, 1.0).followed_by(2.0, -3.0)
    np.testing.assert_allclose(without.logits(z), 2.0 * (0.5 * z + 1.0) - 3.0)
    assert without.label_shifts == ()


@pytest.mark.parametrize("label_shifts", [(), (0.5, -1.0)])
def test_the_state_restores_the_map(label_shifts):
    first = RecalibrationMap(0.5, -2.0, label_shifts)
    assert RecalibrationMap.restore(first.state()) == first


@pytest.mark.parametrize(
    "state",
    [
        {},
        [],
        "0.5",
        {"scale": 0.5},
        {"scale": 0, "shift": 0.0},
        {"scale": -1.0, "shift": 0.0},
        {"scale": float("nan"), "shift": 0.0},
        {"scale": True, "shift": 0.0},
        {"scale": 1.0, "shift": 10**400},
        {"scale": 1.0, "shift": 0.0, "label_shifts": 3},
        {"scale": 1.0, "shift": 0.0, "label_shifts": ["a"]},
        {"scale": 1.0, "shift": 0.0, "other": 1},
    ],
)
def test_invalid_states_are_refused(state):
    with pytest.raises(DataError, match=r"recalibration in calibration\.json must"):
        RecalibrationMap.restore(state)
