import numpy as np

from surelabel.data.sample_targets import with_sample_targets
from surelabel.records import LabelledFeatures, LabelledImages, LabelledScores, RowSelection

NAN = np.nan
TARGETS = [[1, 1], [1, 0], [0, NAN]]


def selection():
    return RowSelection(
        ["random", "query", "random"],
        [0.5, NAN, 0.5],
        ["cat", "dog"],
        np.array([[NAN, 0.0], [1.0, 1.0], [NAN, NAN]]),
    )


def check(changed):
    np.testing.assert_array_equal(changed.known, [[1, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(changed.targets, [[0, 0], [1, 0], [0, 0]])
    assert changed.row_selection.sample_targets is None
    assert changed.row_selection.chosen_by == ["random", "query", "random"]


def test_random_rows_have_only_the_targets_of_the_sample():
    names = ["dog", "cat"]
    check(
        with_sample_targets(
            LabelledImages(["a", "b", "c"], names, TARGETS, row_selection=selection())
        )
    )
    check(
        with_sample_targets(LabelledFeatures(np.eye(3), names, TARGETS, row_selection=selection()))
    )


def test_scores_remain_scores():
    scores = LabelledScores(np.eye(3), "logits", columns=["x", "y", "z"])
    scores = scores.with_labels(["dog", "cat"], TARGETS).with_row_selection(selection())
    changed = with_sample_targets(scores)
    check(changed)
    assert isinstance(changed, LabelledScores)


def test_rows_without_targets_of_a_sample_are_returned_unchanged():
    plain = LabelledImages(["a", "b", "c"], ["dog", "cat"], TARGETS)
    assert with_sample_targets(plain) is plain
    simple = RowSelection(["random", "", ""], [0.5, NAN, NAN])
    chosen = LabelledImages(["a", "b", "c"], ["dog", "cat"], TARGETS, row_selection=simple)
    assert with_sample_targets(chosen) is chosen


def test_labels_that_were_not_annotated_for_the_sample_are_unknown_in_random_rows():
    names, targets = ["dog", "cat", "cow"], np.column_stack([TARGETS, np.ones(3)])
    changed = with_sample_targets(
        LabelledImages(["a", "b", "c"], names, targets, row_selection=selection())
    )
    assert changed.known[:, 2].tolist() == [False, True, False]
