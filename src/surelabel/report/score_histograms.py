"""Plot histograms of the probabilities of positive and of negative labels."""

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_log_count_axis,
    set_plot_style_percent_ticks,
)

BARS = 25


def plot_score_histograms(probabilities: Array, targets: Array, known: Flags) -> Plot:
    """Plot histograms of the probabilities of positive and of negative labels.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``. A target of 0.5 or more is positive.
        known: True where the target is known, ``(n, c)``.
    """
    is_positive = targets >= 0.5
    positive, negative = probabilities[known & is_positive], probabilities[known & ~is_positive]
    return Plot(
        "score_histograms",
        "Probabilities of positive and negative labels",
        f"Two histograms show the probabilities of {len(positive):,} positive and of "
        f"{len(negative):,} negative labels. Counts are on a logarithmic scale.",
        "A good recognizer predicts high probabilities for positive labels (upper histogram) and "
        "low probabilities for negative labels (lower histogram). Grid lines are at powers of ten.",
        draw_score_histograms(positive, negative),
    )


def draw_score_histograms(positive: Array, negative: Array) -> bytes:
    """Plot two histograms with logarithmic counts and return a PNG file.

    Args:
        positive: Probabilities of positive labels, one-dimensional.
        negative: Probabilities of negative labels, one-dimensional.
    """
    figure = new_figure_in_plot_style(5.7)
    upper, lower = figure.subplots(2, sharex=True, sharey=True)
    edges = np.linspace(0, 1, BARS + 1)
    histograms = [np.histogram(values, edges)[0] for values in (positive, negative)]
    titles = (f"positive labels: {len(positive):,}", f"negative labels: {len(negative):,}")
    for axes, histogram, title, colour in zip(
        (upper, lower), histograms, titles, (BLUE, ORANGE), strict=True
    ):
        apply_plot_style_to_axes(axes)
        axes.bar(edges[:-1], histogram, 0.88 / BARS, align="edge", color=colour)
        axes.set_title(title, color=TEXT, fontsize=10, loc="left")
        axes.set(xlim=(0, 1), ylabel="count")
        set_plot_style_log_count_axis(axes, np.max(histograms))
    lower.set_xlabel("probability")
    set_plot_style_percent_ticks(lower.xaxis)
    return plot_style_figure_to_png(figure, left=0.13, bottom=0.1, top=0.94)
