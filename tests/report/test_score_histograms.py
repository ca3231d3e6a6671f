import matplotlib.pyplot as plt
import numpy as np
from PIL import ImageColor

from surelabel.report.plot_style import BLUE, ORANGE
from surelabel.report.score_histograms import draw_score_histograms, plot_score_histograms


def test_positive_labels_are_blue_and_negative_labels_are_orange(pixels, share_of):
    png = draw_score_histograms(np.array([0.9, 0.8]), np.array([0.1]))
    half = len(pixels(png)) // 2
    assert share_of(BLUE, png) > 0.002
    assert share_of(ORANGE, png) > 0.002
    assert (np.abs(pixels(png)[:half] - ImageColor.getrgb(ORANGE)).max(axis=2) >= 12).all()


def test_one_kind_of_label_alone_can_be_drawn(share_of):
    png = draw_score_histograms(np.array([]), np.array([0.1]))
    assert share_of(BLUE, png) == 0


def test_unknown_decisions_are_counted_nowhere(judged):
    found = judged(unknown=0.5)
    there = int((found.targets * found.known).sum())
    absent = int(found.known.sum()) - there
    alt = plot_score_histograms(found.predictions.probabilities, found.targets, found.known).alt
    assert f"the probabilities of {there:,} positive and of {absent:,} negative labels" in alt


def test_no_figure_is_left_open():
    draw_score_histograms(np.array([0.9]), np.array([0.1]))
    assert not plt.get_fignums()
