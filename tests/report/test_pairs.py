from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from surelabel.report.pairs import SHOWN, frequent, pairs_plot


def test_the_most_frequent_labels_are_shown_the_first_of_equals_first():
    together = np.diag([0.2, 0.5, np.nan, 0.2, 0.1])
    assert frequent(together).tolist() == [1, 0, 3, 4, 2]
    assert len(frequent(np.eye(50))) == SHOWN


def test_the_words_name_the_pair_that_is_most_often_together(judged):
    found = judged()
    found.targets[:] = 0
    found.targets[:15, [2, 5]] = 1
    assert "truth: most often label 2 and label 5, in 25.0 %" in pairs_plot(found).alt


def test_the_caption_says_how_far_it_is_from_the_truth_and_how_far_silence_is(whole):
    found = whole()
    caption = pairs_plot(found).caption
    pairs = sum(n * (n - 1) / 2 for n in found.targets.sum(axis=1)) / 120
    assert f"A picture has {pairs:.2f} pairs of labels" in caption
    assert caption.count(" points for ") == 2
    assert f"to say never would be off by {100 * pairs / 28:.2f} points" in caption


def test_there_is_a_third_map_where_the_encoder_alone_is_known(whole, pixels):
    found = whole()
    three, two = pairs_plot(found), pairs_plot(replace(found, alone=None))
    assert three.alt.startswith("3 maps")
    assert two.alt.startswith("2 maps")
    assert len(pixels(three.png)) > len(pixels(two.png))


@pytest.mark.parametrize("known", [0, 1])
def test_pairs_of_which_nothing_is_known_can_be_drawn(judged, known):
    found = judged(labels=3)
    found.targets[:] = 0
    found.known[:, known:] = False
    found.known[0, 2] = True
    plot = pairs_plot(found)
    assert "nan" not in plot.alt + plot.caption


def test_names_in_any_script_and_with_signs_of_mathematics_can_be_drawn(judged):
    assert pairs_plot(judged(names=["$x$", "犬", "a" * 99])).png


def test_scores_and_single_labels_have_no_pairs(judged):
    assert pairs_plot(judged(calibrated=False)) is None
    assert pairs_plot(judged(names=["lion"])) is None


def test_no_figure_is_left_open(judged):
    pairs_plot(judged())
    assert not plt.get_fignums()
