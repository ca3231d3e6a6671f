import pytest

from surelabel.errors import ConfigError
from surelabel.metrics.whole import whole


@pytest.mark.parametrize("value", [3, 3.0])
def test_a_whole_number_comes_back_as_one(value):
    assert whole("bins", value) == 3
    assert isinstance(whole("bins", value), int)


@pytest.mark.parametrize("value", [0, -2, 1.5, float("nan"), float("inf")])
def test_what_counts_nothing_is_refused(value):
    with pytest.raises(ConfigError, match=r"bins must be a whole number of at least 1. Got"):
        whole("bins", value)


def test_the_least_can_be_more():
    with pytest.raises(ConfigError, match=r"draws must be a whole number of at least 2. Got 1"):
        whole("draws", 1, least=2)
