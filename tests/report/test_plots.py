from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageColor

from surelabel.metrics import reliability
from surelabel.report.plots import (
    BLUE,
    ORANGE,
    PAPER,
    confidence_plot,
    per_class_plot,
    reliability_plot,
)

NAMES = ["dollar $x^2$ $", "line\nbreak", "犬", "", "a" * 300]


def pixels(png):
    picture = Image.open(BytesIO(png))
    assert picture.format == "PNG"
    return np.asarray(picture.convert("RGB")).astype(int)


def share_of(colour, png):
    """How much of a plot is about this colour."""
    return (np.abs(pixels(png) - ImageColor.getrgb(colour)).max(axis=2) < 12).mean()


def test_names_of_any_kind_can_be_drawn():
    png = per_class_plot(NAMES, np.linspace(0, 1, 5), np.full(5, 0.1))
    assert share_of(PAPER, png) > 0.3


def test_labels_without_average_precision_take_no_room():
    precision = np.array([0.5, np.nan, 0.4, np.nan, np.nan])
    some = per_class_plot(NAMES, precision, np.full(5, 0.1))
    two = per_class_plot(["", "犬"], precision[[0, 2]], np.full(2, 0.1))
    assert pixels(some).shape == pixels(two).shape


def test_a_thousand_labels_give_a_plot_of_the_usual_size():
    random = np.random.default_rng(0)
    names = [f"label {i}" for i in range(1000)]
    png = per_class_plot(names, random.random(1000), random.random(1000) / 9)
    assert max(pixels(png).shape) < 1400
    assert len(png) < 200_000


def test_what_is_there_is_blue_and_what_is_not_is_orange():
    png = confidence_plot(np.array([0.9, 0.8]), np.array([0.1]))
    half = len(pixels(png)) // 2
    assert share_of(BLUE, png) > 0.002
    assert share_of(ORANGE, png) > 0.002
    assert (np.abs(pixels(png)[:half] - ImageColor.getrgb(ORANGE)).max(axis=2) >= 12).all()


def test_one_kind_of_label_alone_can_be_drawn():
    png = confidence_plot(np.array([]), np.array([0.1]))
    assert share_of(BLUE, png) == 0


def test_a_single_decision_has_a_reliability_plot():
    found = reliability(np.array([[1.0]]), np.array([[1.0]]), bins=15)
    assert share_of(PAPER, reliability_plot(found)) > 0.5


def test_the_same_numbers_give_the_same_bytes():
    found = reliability(np.linspace(0, 1, 50)[:, None], np.ones((50, 1)), bins=15)
    assert reliability_plot(found) == reliability_plot(found)


def test_no_figure_is_left_open():
    confidence_plot(np.array([0.9]), np.array([0.1]))
    assert not plt.get_fignums()
