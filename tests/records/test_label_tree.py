import numpy as np
import pytest

from surelabel.errors import DataError, InputError
from surelabel.records import NO_PARENT, LabelTree, descendant_columns, order_of_descent

TREE = LabelTree({"dog": "animal", "cat": "animal", "puppy": "dog", "car": "vehicle"})
NAMES = ["puppy", "animal", "dog", "cat", "car", "vehicle", "sky"]
COLUMNS = [2, NO_PARENT, 1, 1, 5, NO_PARENT, NO_PARENT]
UNKNOWN = float("nan")


def test_columns_of_parents_follow_the_labels():
    assert TREE.parent_columns(NAMES).tolist() == COLUMNS
    assert TREE.ancestors("puppy") == ["dog", "animal"]
    order = order_of_descent(np.array(COLUMNS))
    assert sorted(order) == list(range(7))
    assert order.index(1) < order.index(2) < order.index(0)


def test_a_label_that_is_not_known_is_refused():
    with pytest.raises(InputError, match=r"recognizer; got 2 other labels, such as 'animal'"):
        TREE.parent_columns([name for name in NAMES if name not in ("animal", "cat")])


@pytest.mark.parametrize(
    "parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"x": "a", "a": "b", "b": "a"}]
)
def test_a_label_that_is_its_own_ancestor_is_refused(parents):
    with pytest.raises(InputError, match="must not be its own ancestor; got"):
        LabelTree(parents)


def test_each_column_with_children_is_after_its_descendants():
    found = [(column, below.tolist()) for column, below in descendant_columns(COLUMNS)]
    assert found == [(2, [0]), (5, [4]), (1, [3, 2, 0])]
    assert descendant_columns([NO_PARENT] * 3) == []


def test_columns_of_a_cycle_have_no_order():
    assert order_of_descent([1, 0, NO_PARENT, 1]) == [2]


def test_a_part_of_the_labels_keeps_the_nearest_ancestors():
    assert TREE.restricted_to(["puppy", "animal", "sky"]).parents == {"puppy": "animal"}
    assert TREE.restricted_to(["puppy", "car"]) is None
    assert TREE.path("puppy") == ["animal", "dog", "puppy"]
    assert TREE.path("sky") == ["sky"]


def test_targets_follow_from_the_tree():
    targets = np.full((4, 7), UNKNOWN)
    targets[0, 0] = 1  # puppy
    targets[1, 1] = 0  # animal
    targets[2, [2, 3]] = 0  # dog and cat
    targets[3, 0] = 0.4
    implied = TREE.implied_targets(targets, NAMES)
    expected = np.full((4, 7), UNKNOWN)
    expected[0, [1, 2]] = 1
    expected[1, [0, 2, 3]] = 0
    expected[2, 0] = 0  # the animal remains unknown
    np.testing.assert_array_equal(implied, expected)


def test_targets_are_extended_where_the_tree_completes_them():
    targets = np.array(
        [
            [1, UNKNOWN, UNKNOWN, 0, 0, 0, 0],
            [UNKNOWN, 0, UNKNOWN, UNKNOWN, 1, UNKNOWN, 0],
            [0, 1, 0, 1, 0, 0, UNKNOWN],
        ]
    )
    expected = [[1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 0, UNKNOWN]]
    np.testing.assert_array_equal(TREE.extend_targets(targets, NAMES), expected)
    assert np.isnan(targets[0, 1])  # the given targets do not change


def frequencies(targets):
    """Fraction of positive targets among the known targets of each label."""
    return np.nanmean(targets, axis=0)


@pytest.fixture
def complete():
    """Complete targets of 3000 images, in which each dog, puppy and cat is an animal."""
    rng = np.random.default_rng(0)
    targets = (rng.random((3000, 7)) < 0.2).astype(float)
    targets[:, 2] = np.maximum(targets[:, 2], targets[:, 0])
    targets[:, 1] = np.maximum(targets[:, 1], targets[:, [2, 3]].max(axis=1))
    targets[:, 5] = np.maximum(targets[:, 5], targets[:, 4])
    return targets


@pytest.mark.parametrize("columns", [[0, 2, 3], [1], [0, 1, 2, 3]], ids=str)
def test_targets_that_are_missing_at_random_stay_unknown(complete, columns):
    rng = np.random.default_rng(1)
    targets = complete.copy()
    for column in columns:
        targets[rng.random(3000) < 0.7, column] = UNKNOWN
    np.testing.assert_array_equal(TREE.extend_targets(targets, NAMES), targets)
    with_all = np.where(np.isnan(targets), TREE.implied_targets(targets, NAMES), targets)
    distorted = np.abs(frequencies(with_all) - complete.mean(axis=0))
    kept = np.abs(frequencies(targets) - complete.mean(axis=0))
    assert distorted.max() > 0.05
    assert kept.max() < 0.03


def test_targets_that_only_the_tree_can_complete_are_added(complete):
    hierarchical, bottom_up = complete.copy(), complete.copy()
    hierarchical[np.ix_(complete[:, 1] == 0, [0, 2, 3])] = UNKNOWN  # animals are annotated further
    bottom_up[complete[:, [0, 2, 3]].max(axis=1) == 1, 1] = UNKNOWN  # other animals are annotated
    for targets in (hierarchical, bottom_up):
        np.testing.assert_array_equal(TREE.extend_targets(targets, NAMES), complete)


def test_targets_of_few_images_and_unknown_labels_are_defined():
    unknown = np.full((2, 7), UNKNOWN)
    np.testing.assert_array_equal(TREE.extend_targets(unknown, NAMES), unknown)
    assert TREE.extend_targets(np.zeros((0, 7)), NAMES).shape == (0, 7)
    positive = np.array([[1.0] + [UNKNOWN] * 6])
    np.testing.assert_array_equal(TREE.extend_targets(positive, NAMES), positive)


def test_a_positive_label_with_a_negative_ancestor_is_refused():
    targets = np.full((3, 7), UNKNOWN)
    targets[1:, [0, 1]] = 1, 0
    with pytest.raises(
        DataError, match=r"^row 1: .* got 'puppy' positive and 'animal' negative \(and"
    ):
        TREE.extend_targets(targets, NAMES)
    message = r"^b\.jpg: .* negative \(and in 1 other image\)\."
    with pytest.raises(DataError, match=message):
        TREE.extend_targets(targets, NAMES, ["a.jpg", "b.jpg", "c.jpg"])
