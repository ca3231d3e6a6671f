import numpy as np

from surelabel.metrics import recall_at_k, recall_at_k_per_class


def test_a_class_without_positives_has_no_recall():
    per_class = recall_at_k_per_class([[0.9, 0.1], [0.8, 0.2]], [[1, 0], [0, 0]], k=1)
    np.testing.assert_array_equal(per_class, [1, np.nan])


def test_tied_labels_share_the_last_rank():
    assert recall_at_k([[0.5, 0.5]], [[1, 0]], k=1) == 0.5
