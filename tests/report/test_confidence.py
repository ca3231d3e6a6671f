import matplotlib.pyplot as plt
import numpy as np
from PIL import ImageColor

from surelabel.report.confidence import confidence_plot, histograms
from surelabel.report.drawing import BLUE, ORANGE


def test_what_is_there_is_blue_and_what_is_not_is_orange(pixels, share_of):
    png = histograms(np.array([0.9, 0.8]), np.array([0.1]))
    half = len(pixels(png)) // 2
    assert share_of(BLUE, png) > 0.002
    assert share_of(ORANGE, png) > 0.002
    assert (np.abs(pixels(png)[:half] - ImageColor.getrgb(ORANGE)).max(axis=2) >= 12).all()


def test_one_kind_of_label_alone_can_be_drawn(share_of):
    png = histograms(np.array([]), np.array([0.1]))
    assert share_of(BLUE, png) == 0


def test_unknown_decisions_are_counted_nowhere(judged):
    found = judged(unknown=0.5)
    there = int((found.targets * found.known).sum())
    absent = int(found.known.sum()) - there
    alt = confidence_plot(found).alt
    assert f"{there:,} probabilities of labels that are there, {absent:,} of labels" in alt


def test_no_figure_is_left_open():
    histograms(np.array([0.9]), np.array([0.1]))
    assert not plt.get_fignums()
