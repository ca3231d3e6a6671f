import json

import numpy as np
import pytest

from surelabel.report.json_values import strict_json_value


def test_arrays_and_tuples_become_lists_and_keys_become_strings():
    value = {"a": np.arange(4).reshape(2, 2), 3: (np.float32(0.5), np.bool_(True), None, "b")}
    assert strict_json_value(value) == {"a": [[0, 1], [2, 3]], "3": [0.5, True, None, "b"]}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), np.float64("nan")])
def test_a_number_that_is_not_finite_becomes_null_at_any_depth(number):
    value = strict_json_value({"a": [number, (number,)], "b": np.array([1.0, number])})
    assert json.dumps(value, allow_nan=False) == '{"a": [null, [null]], "b": [1.0, null]}'


def test_numbers_keep_their_type_and_their_value():
    value = strict_json_value({"a": 3, "b": 3.0, "c": np.float64(0.1), "d": True})
    assert json.dumps(value) == '{"a": 3, "b": 3.0, "c": 0.1, "d": true}'
