import json
from importlib.resources import files

import numpy as np
import pytest

from surelabel.calibration import CALIBRATORS
from surelabel.calibration.fitting.input_validation import (
    validate_and_flatten_calibration_data,
    validate_calibrator_state,
)
from surelabel.errors import DataError, InputError


def test_a_state_of_the_first_version_is_still_read():
    old = {"platt": {"slope": 9.5, "shift": -4.25}, "temperature": {"temperature": 2.5}}
    expected = {"platt": 14.75, "temperature": 0.8}
    for name, state in old.items():
        assert CALIBRATORS[name]().restore(state).logits([[2.0]])[0, 0] == expected[name]


@pytest.mark.parametrize("encoder", ["tiny-vit", "tiny-rn"])
def test_what_an_embedded_encoder_ships_with_is_still_read(encoder):
    file = files("surelabel.encoders").joinpath("weights", f"{encoder}.calibration.json")
    found = json.loads(file.read_text(encoding="utf-8"))
    for saved in found["templates"].values():
        restored = CALIBRATORS[saved["calibrator"]]().restore(saved["state"])
        assert restored.shared_calibrator() is restored
        assert restored.state() == saved["state"]


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {"a": 1.0},
        {"a": 1.0, "b": [1.0], "c": 2.0},
        {"a": 1.0, "b": 2.0},
        {"a": [1.0], "b": [1.0]},
        {"a": True, "b": [1.0]},
        {"a": 1.0, "b": ["1.0"]},
        {"a": 1.0, "b": [None]},
        {"a": 1.0, "b": [[1.0], [1.0, 2.0]]},
        {"a": 1.0, "b": []},
        {"a": 1.0, "b": [float("inf")]},
    ],
)
def test_a_state_must_hold_just_these_finite_numbers(state):
    with pytest.raises(DataError, match=r"finite numbers for a, b, .* Calibrate again"):
        validate_calibrator_state(state, a="", b="k")


def test_a_good_state_comes_back_as_arrays():
    found = validate_calibrator_state({"a": 1, "b": [1.5, 2]}, a="", b="k")
    assert float(found["a"]) == 1
    np.testing.assert_array_equal(found["b"], [1.5, 2.0])


def test_lists_of_one_letter_must_be_as_long():
    with pytest.raises(DataError, match="lists of matching lengths"):
        validate_calibrator_state({"a": [1.0, 2.0], "b": [1.0]}, a="k", b="k")


def test_a_long_state_is_shown_in_part():
    with pytest.raises(DataError, match=r"…\. Calibrate again") as caught:
        validate_calibrator_state({"a": [1.0] * 10_000}, a="")
    assert len(str(caught.value)) < 500


def test_known_decisions_are_flat_and_in_step():
    x, y = validate_and_flatten_calibration_data(
        [[1.0, 2.0], [3.0, 4.0]], [[0, np.nan], [1, 0.5]], [[1, 1], [1, 0]]
    )
    np.testing.assert_array_equal(x, [1, 3])
    np.testing.assert_array_equal(y, [0, 1])


def test_logits_may_be_unknown_nowhere():
    with pytest.raises(InputError, match="must be finite"):
        validate_and_flatten_calibration_data([[np.nan, 1.0]], [[np.nan, 1.0]], None)
