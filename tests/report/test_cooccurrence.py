from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from surelabel.report.baseline_comparison import (
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)
from surelabel.report.cooccurrence import (
    MAX_LABELS,
    plot_cooccurrence,
    select_cooccurrence_plot_labels,
)


def plot(found):
    sources = predictions_for_baseline_comparison(found.predictions, found.zero_shot_baseline)
    labels = threshold_labels_for_baseline_comparison(sources, found.targets, found.known)
    return plot_cooccurrence(found.predictions.names, labels)


def test_the_most_frequent_labels_are_shown_the_first_of_equals_first():
    together = np.diag([0.2, 0.5, np.nan, 0.2, 0.1])
    assert select_cooccurrence_plot_labels(together).tolist() == [1, 0, 3, 4, 2]
    assert len(select_cooccurrence_plot_labels(np.eye(50))) == MAX_LABELS


def test_the_alternative_text_names_the_most_frequent_pair(judged):
    found = judged()
    found.targets[:] = 0
    found.targets[:15, [2, 5]] = 1
    assert (
        "ground truth: the most frequent pair is label 2 and label 5, in 25.0 %" in plot(found).alt
    )


def test_the_caption_contains_the_error_and_the_error_without_pairs(whole):
    found = whole()
    caption = plot(found).caption
    pairs = sum(n * (n - 1) / 2 for n in found.targets.sum(axis=1)) / 120
    assert f"an image has {pairs:.2f} pairs of positive labels" in caption
    assert caption.count(" points for ") == 2
    assert f"mean absolute error would be {100 * pairs / 28:.2f} points." in caption


def test_there_is_a_third_matrix_with_a_zero_shot_baseline(whole, pixels):
    found = whole()
    three, two = plot(found), plot(replace(found, zero_shot_baseline=None))
    assert three.alt.startswith("3 matrices")
    assert two.alt.startswith("2 matrices")
    assert len(pixels(three.png)) > len(pixels(two.png))


@pytest.mark.parametrize("known", [0, 1])
def test_pairs_without_known_targets_can_be_drawn(judged, known):
    found = judged(labels=3)
    found.targets[:] = 0
    found.known[:, known:] = False
    found.known[0, 2] = True
    matrices = plot(found)
    assert "nan" not in matrices.alt + matrices.caption


def test_names_in_any_script_and_with_signs_of_mathematics_can_be_drawn(judged):
    assert plot(judged(names=["$x$", "犬", "a" * 99])).png


def test_scores_and_single_labels_have_no_pairs(judged):
    assert plot(judged(calibrated=False)) is None
    assert plot(judged(names=["lion"])) is None


def test_no_figure_is_left_open(judged):
    plot(judged())
    assert not plt.get_fignums()
