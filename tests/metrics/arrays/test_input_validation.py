import pytest

from surelabel.errors import ConfigError
from surelabel.metrics.arrays.input_validation import validate_metric_whole_number


@pytest.mark.parametrize("value", [3, 3.0])
def test_a_whole_number_is_returned_as_an_integer(value):
    assert validate_metric_whole_number("bins", value) == 3
    assert isinstance(validate_metric_whole_number("bins", value), int)


@pytest.mark.parametrize("value", [0, -2, 1.5, float("nan"), float("inf")])
def test_numbers_below_one_or_not_whole_are_refused(value):
    with pytest.raises(ConfigError, match=r"bins must be a whole number of at least 1; got"):
        validate_metric_whole_number("bins", value)


def test_the_minimum_can_be_higher():
    with pytest.raises(ConfigError, match=r"draws must be a whole number of at least 2; got 1"):
        validate_metric_whole_number("draws", 1, minimum=2)
