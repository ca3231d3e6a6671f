import numpy as np

from surelabel.report.drawing import PAPER
from surelabel.report.precision import bars, precision_plot

NAMES = ["dollar $x^2$ $", "line\nbreak", "犬", "", "a" * 300]


def test_names_of_any_kind_can_be_drawn(share_of):
    png = bars(NAMES, np.linspace(0, 1, 5), np.full(5, 0.1))
    assert share_of(PAPER, png) > 0.3


def test_labels_without_average_precision_take_no_room(pixels):
    precision = np.array([0.5, np.nan, 0.4, np.nan, np.nan])
    some = bars(NAMES, precision, np.full(5, 0.1))
    two = bars(["", "犬"], precision[[0, 2]], np.full(2, 0.1))
    assert pixels(some).shape == pixels(two).shape


def test_a_thousand_labels_give_a_plot_of_the_usual_size(pixels):
    random = np.random.default_rng(0)
    names = [f"label {i}" for i in range(1000)]
    png = bars(names, random.random(1000), random.random(1000) / 9)
    assert max(pixels(png).shape) < 1400
    assert len(png) < 200_000


def test_the_best_and_the_worst_label_are_named(judged):
    found = judged(names=["lion", "bear", "fox"])
    found.per_class["average_precision"][:] = [0.25, 0.75, np.nan]
    assert "bear with 75 %, the last is lion with 25 %" in precision_plot(found).alt


def test_there_is_no_plot_when_all_are_undefined(judged):
    found = judged()
    found.per_class["average_precision"][:] = np.nan
    assert precision_plot(found) is None
