"""Labels that are identical in all images, and seen labels that are not the most frequent."""

import numpy as np

from surelabel.data.protocols.definition.annotation_defects import (
    identical_labels,
    labels_outside_frequency,
)

NAMES = ["a", "b", "c", "d"]
TARGETS = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]], dtype=float)


def test_labels_with_equal_columns_are_named_but_not_labels_without_two_positives():
    assert list(identical_labels(NAMES, TARGETS)) == [
        "The labels a, b are identical in 3 images, with 2 positive images each."
    ]
    assert list(identical_labels(["c", "d", "e"], np.array([[1, 1, 0], [0, 0, 0]]))) == []


def test_an_unseen_label_that_is_more_frequent_than_a_seen_label_is_named():
    assert list(labels_outside_frequency(NAMES, TARGETS, ["a", "b"])) == []
    assert list(labels_outside_frequency(NAMES, TARGETS, ["a", "c"])) == [
        "The seen labels are not the most frequent ones: b is unseen and has 2 positive images, "
        "and c is seen and has 1."
    ]
    assert list(labels_outside_frequency(NAMES, TARGETS[:2], ["a", "c"])) == []  # a tie
    assert list(labels_outside_frequency(NAMES, TARGETS, ["c", "z"])) == []  # z is no column
