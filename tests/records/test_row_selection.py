import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import LabelledFeatures, LabelledImages, LabelledScores, RowSelection

SELECTION = RowSelection(["random", "expected_gain", ""], [0.25, np.nan, np.nan])


def test_only_rows_chosen_at_random_are_random():
    assert SELECTION.is_random.tolist() == [True, False, False]
    assert len(SELECTION) == 3


@pytest.mark.parametrize(
    ("key", "probability"),
    [("random", np.nan), ("random", 0), ("random", 1.5), ("", 0.5), ("expected_gain", 0.5)],
)
def test_a_probability_that_contradicts_the_key_is_refused(key, probability):
    with pytest.raises(InputError, match=r"inclusion_probability must be in \(0, 1\]"):
        RowSelection([key], [probability])


def test_lengths_must_agree():
    with pytest.raises(InputError, match=r"one value per row, \(2,\); got \(1,\)"):
        RowSelection(["", ""], [np.nan])
    with pytest.raises(InputError, match="one entry per row, 1; got 3"):
        LabelledImages(["a"], ["x"], [[1]], row_selection=SELECTION)
    with pytest.raises(InputError, match="one entry per row, 1; got 3"):
        LabelledFeatures([[1.0]], ["x"], [[1]], row_selection=SELECTION)


def three_rows(kind):
    targets = [[1], [0], [np.nan]]
    if kind == "images":
        return LabelledImages(["a", "b", "c"], ["x"], targets, row_selection=SELECTION)
    if kind == "features":
        return LabelledFeatures(np.eye(3), ["x"], targets, row_selection=SELECTION)
    scores = LabelledScores(np.eye(3), "logits", columns=["x", "y", "z"])
    return scores.with_labels(["x"], targets).with_row_selection(SELECTION)


@pytest.mark.parametrize("kind", ["images", "features", "scores"])
def test_the_entries_follow_their_rows(kind):
    taken = three_rows(kind).take([2, 0]).row_selection
    assert taken.chosen_by == ["", "random"]
    assert np.array_equal(taken.inclusion_probability, [np.nan, 0.25], equal_nan=True)
    assert three_rows(kind).take([]).row_selection.chosen_by == []


def test_scores_keep_the_entries_with_other_labels_and_paths():
    scores = three_rows("scores")
    for other in (scores.with_labels(["y"], [[1], [1], [1]]), scores.with_paths(["a", "b", "c"])):
        assert other.row_selection is SELECTION


def test_targets_of_the_sample_follow_their_rows():
    targets = np.array([[1.0, np.nan], [0.0, 0.0], [np.nan, 1.0]])
    selection = RowSelection([*SELECTION.chosen_by], [0.25, np.nan, np.nan], ["x", "y"], targets)
    taken = selection.take([2, 0])
    np.testing.assert_array_equal(taken.sample_targets, targets[[2, 0]])
    assert taken.sample_names == ["x", "y"]
    with pytest.raises(InputError, match=r"sample_targets must have .*\(3, 1\); got \(3, 2\)"):
        RowSelection([*SELECTION.chosen_by], [0.25, np.nan, np.nan], ["x"], targets)
