import numpy as np

from surelabel.report.average_precision_plot import (
    draw_average_precision_plot,
    plot_average_precision,
)
from surelabel.report.plot_style import PAPER

NAMES = ["dollar $x^2$ $", "line\nbreak", "犬", "", "a" * 300]


def test_names_of_any_kind_can_be_drawn(share_of):
    png = draw_average_precision_plot(NAMES, np.linspace(0, 1, 5), np.full(5, 0.1))
    assert share_of(PAPER, png) > 0.3


def test_labels_without_average_precision_take_no_space(pixels):
    precision = np.array([0.5, np.nan, 0.4, np.nan, np.nan])
    some = draw_average_precision_plot(NAMES, precision, np.full(5, 0.1))
    two = draw_average_precision_plot(["", "犬"], precision[[0, 2]], np.full(2, 0.1))
    assert pixels(some).shape == pixels(two).shape


def test_a_thousand_labels_give_a_plot_of_the_usual_size(pixels):
    random = np.random.default_rng(0)
    names = [f"label {i}" for i in range(1000)]
    png = draw_average_precision_plot(names, random.random(1000), random.random(1000) / 9)
    assert max(pixels(png).shape) < 1400
    assert len(png) < 200_000


def test_the_best_and_the_worst_label_are_named():
    precision = np.array([0.25, 0.75, np.nan])
    plot = plot_average_precision(["lion", "bear", "fox"], precision, np.full(3, 0.1))
    assert "highest for bear (75 %) and lowest for lion (25 %)" in plot.alt


def test_there_is_no_plot_when_all_are_undefined():
    assert plot_average_precision(["lion"], np.array([np.nan]), np.array([0.1])) is None
