import numpy as np
import pytest

from surelabel.errors import ConfigError
from surelabel.metrics import precision_at_k, precision_at_k_per_class


def test_a_class_that_is_never_selected_has_no_precision():
    per_class = precision_at_k_per_class([[0.9, 0.1], [0.8, 0.2]], [[1, 1], [0, 1]], k=1)
    np.testing.assert_array_equal(per_class, [0.5, np.nan])


@pytest.mark.parametrize("k", [0, -1, 1.5, float("nan"), float("inf")])
def test_k_must_be_a_whole_number_above_zero(k):
    with pytest.raises(ConfigError, match=f"at least 1; got {k}"):
        precision_at_k([[0.1]], [[1]], k=k)


def test_without_classes_the_precision_is_undefined():
    assert np.isnan(precision_at_k(np.zeros((3, 0)), np.zeros((3, 0))))
