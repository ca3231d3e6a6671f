import numpy as np
import pytest

from surelabel.errors import InputError, NotFitted
from surelabel.records import LabelledImages, Predictions


def test_nan_and_known_false_both_mean_unknown():
    it = LabelledImages(["a", "b"], ["x"], [[np.nan], [1]], known=[[True], [False]])
    assert not it.known.any()
    assert (it.targets == 0).all()


def test_everything_is_known_when_nothing_is_said():
    assert LabelledImages(["a"], ["x", "y"], [[0, 1]]).known.all()


@pytest.mark.parametrize("value", [-0.1, 1.5, np.inf])
def test_a_target_outside_its_range_is_refused(value):
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        LabelledImages(["a"], ["x"], [[value]])


def test_a_target_matrix_of_the_wrong_shape_is_refused():
    with pytest.raises(InputError, match=r"\(1, 2\). Got \(1, 1\)"):
        LabelledImages(["a"], ["x", "y"], [[1.0]])


def test_probabilities_need_something_that_calibrated_them():
    scores = np.zeros((1, 1), np.float32)
    with pytest.raises(NotFitted, match="nothing calibrated"):
        _ = Predictions(["a"], ["x"], scores, scores).probabilities
    assert Predictions(["a"], ["x"], scores, scores, "platt").probabilities == [[0.5]]
