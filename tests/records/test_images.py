import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import LabelledFeatures, LabelledImages


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
    with pytest.raises(InputError, match=r"\(1, 2\); got shape \(1, 1\)"):
        LabelledImages(["a"], ["x", "y"], [[1.0]])


def test_rows_of_vectors_are_called_by_their_number():
    it = LabelledFeatures([[1, 2], [3, 4]], ["x"], [[1], [np.nan]])
    assert it.paths == ["row 0", "row 1"]
    assert it.features.dtype == np.float32
    assert it.known.tolist() == [[True], [False]]
    assert it.take([1]).paths == ["row 1"]


@pytest.mark.parametrize(
    ("features", "names", "targets", "complaint"),
    [
        ([[1.0, np.nan]], ["x"], [[1]], "must be finite; got 1"),
        ([[1.0, 2.0]], ["x", "y"], [[1]], r"one column per label, 2; got 1"),
        ([[1.0, 2.0]], ["x"], [[1], [0]], r"axes|n"),
        ([1.0, 2.0], ["x"], [[1]], r"n d"),
    ],
)
def test_vectors_that_do_not_fit_their_labels_are_refused(features, names, targets, complaint):
    with pytest.raises(InputError, match=complaint):
        LabelledFeatures(features, names, targets)


@pytest.mark.parametrize("known", [[[np.nan]], [[0.5]], [[2]]])
def test_known_is_true_or_false(known):
    with pytest.raises(InputError, match="known must be True or False for each target; got"):
        LabelledImages(["a"], ["x"], [[1.0]], known)
