"""Plot the average precision of each label."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_percent_ticks,
    shorten_label_for_plot_style,
)

MAX_LABELS = 40  # labels that fit below each other
N_EXTREMES = 15  # labels at each end of the ranking, if there are more than MAX_LABELS


def plot_average_precision(
    names: Sequence[str], average_precision: Array, prevalence: Array
) -> Plot | None:
    """Plot the average precision of each label, sorted from highest to lowest.

    Args:
        names: Labels, length c.
        average_precision: Average precision of each label in [0, 1], ``(c,)``. Undefined values are
            NaN.
        prevalence: Fraction of positive targets of each label, in [0, 1], ``(c,)``.

    Returns:
        Plot of the average precision, or None if the average precision of all labels is undefined.
    """
    if np.isnan(average_precision).all():
        return None
    best = int(np.nanargmax(average_precision))
    worst = int(np.nanargmin(average_precision))
    return Plot(
        "average_precision",
        "Average precision of each label",
        "The bars show average precision in decreasing order. The average precision is highest for "
        f"{names[best]} ({100 * average_precision[best]:.0f} %) and lowest for {names[worst]} "
        f"({100 * average_precision[worst]:.0f} %).",
        "Each bar shows the average precision of one label. The orange mark is the average "
        "precision of a random ranking, which equals the prevalence of the label.",
        draw_average_precision_plot(names, average_precision, prevalence),
    )


def draw_average_precision_plot(
    names: Sequence[str], average_precision: Array, prevalence: Array
) -> bytes:
    """Plot bars of the average precision of each label and return a PNG file.

    Labels with an undefined value are left out. With more than 40 labels, the plot shows the
    profile of all labels and the bars of the 15 highest and the 15 lowest.

    Args:
        names: Labels, length c.
        average_precision: Average precision of each label in [0, 1], ``(c,)``. Undefined values are
            NaN.
        prevalence: Fraction of positive targets of each label, in [0, 1], ``(c,)``.
    """
    n_defined = int((~np.isnan(average_precision)).sum())
    order = np.argsort(-average_precision, kind="stable")[:n_defined]
    if n_defined <= MAX_LABELS:
        height = 0.9 + 0.19 * n_defined
        figure = new_figure_in_plot_style(height)
        _draw_average_precision_bars(figure.subplots(), names, average_precision, prevalence, order)
        return plot_style_figure_to_png(
            figure, left=0.32, bottom=0.6 / height, top=1 - 0.1 / height
        )
    figure = new_figure_in_plot_style(8.4)
    profile, highest, lowest = figure.subplots(3, height_ratios=[1.1, 2, 2])
    _draw_average_precision_profile(profile, average_precision[order], prevalence[order])
    _draw_average_precision_bars(highest, names, average_precision, prevalence, order[:N_EXTREMES])
    _draw_average_precision_bars(lowest, names, average_precision, prevalence, order[-N_EXTREMES:])
    highest.set_title(f"{N_EXTREMES} highest", color=TEXT, fontsize=9.5, loc="left")
    lowest.set_title(f"{N_EXTREMES} lowest", color=TEXT, fontsize=9.5, loc="left")
    highest.set_xlabel("")
    return plot_style_figure_to_png(figure, left=0.32, bottom=0.07, top=0.97)


def _draw_average_precision_bars(
    axes: Axes,
    names: Sequence[str],
    average_precision: Array,
    prevalence: Array,
    order: npt.NDArray[np.int64],
) -> None:
    rows = np.arange(len(order))
    apply_plot_style_to_axes(axes)
    axes.barh(rows, average_precision[order], height=0.72, color=BLUE, alpha=0.8)
    axes.vlines(prevalence[order], rows - 0.4, rows + 0.4, color=ORANGE, linewidth=2)
    axes.set_yticks(
        rows, [shorten_label_for_plot_style(names[column]) for column in order], fontsize=8
    )
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set(xlim=(0, 1), ylim=(len(order) - 0.4, -0.6))
    axes.grid(False, axis="y")
    axes.set_xlabel("average precision; orange: random ranking", fontsize=9)
    set_plot_style_percent_ticks(axes.xaxis)


def _draw_average_precision_profile(
    axes: Axes, average_precision: Array, prevalence: Array
) -> None:
    edges = np.arange(len(average_precision) + 1)
    apply_plot_style_to_axes(axes)
    axes.stairs(average_precision, edges, fill=True, color=BLUE, alpha=0.8)
    axes.stairs(prevalence, edges, color=ORANGE, linewidth=1.2)
    axes.set(xlim=(0, len(average_precision)), ylim=(0, 1))
    title = f"all {format_count(len(average_precision), 'label')}"
    axes.set_title(title, color=TEXT, fontsize=9.5, loc="left")
    set_plot_style_percent_ticks(axes.yaxis)
