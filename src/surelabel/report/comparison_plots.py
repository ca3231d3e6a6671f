"""Plot the differences of each label between two compared models."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from surelabel.evaluation import Comparison, LabelDifferences
from surelabel.evaluation.prediction_comparison import LABEL_METRICS
from surelabel.report.comparison_tables import DIFFERENCE_UNITS
from surelabel.report.metric_descriptions import describe_metric
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    shorten_label_for_plot_style,
)

MAX_LABELS = 40  # labels that fit below each other
N_EXTREMES = 20  # labels at each end of the ranking, if there are more than MAX_LABELS
GREY = "#8a93a3"
COMPARISON_PLOT_NAMES = tuple(f"difference_{metric}" for metric in LABEL_METRICS)
CAPTION = (
    "Each point is the difference B − A of one label, and each line is its 95 % interval. B is "
    "significantly better for blue labels, and A for orange labels, at a false discovery rate of "
    "5 %. Labels without a significant difference are grey."
)


def comparison_plots(comparison: Comparison) -> list[Plot]:
    """Return a plot of the differences of the labels for each metric.

    A metric without a defined difference has no plot.

    Args:
        comparison: Result of the comparison.
    """
    return [
        _plot_label_differences(comparison, metric, labels)
        for metric, labels in comparison.labels.items()
        if not np.isnan(labels.difference).all()
    ]


def _plot_label_differences(comparison: Comparison, metric: str, labels: LabelDifferences) -> Plot:
    title = describe_metric(metric).title
    defined = np.flatnonzero(~np.isnan(labels.difference))
    order = defined[np.argsort(-labels.difference[defined], kind="stable")]
    highest, lowest = (comparison.names[order[end]] for end in (0, -1))
    caption = CAPTION
    if len(order) > MAX_LABELS:
        caption += (
            f" Only the {N_EXTREMES} highest and the {N_EXTREMES} lowest of {len(order):,} "
            "differences are shown."
        )
        order = np.concatenate([order[:N_EXTREMES], order[-N_EXTREMES:]])
    return Plot(
        f"difference_{metric}",
        f"{title}: difference of each label",
        f"Differences B − A in decreasing order. The difference is highest for {highest} and "
        f"lowest for {lowest}. The number of labels with a significant difference is "
        f"{int(labels.is_different.sum())}.",
        caption,
        _draw_label_differences(comparison, metric, labels, order),
    )


def _draw_label_differences(
    comparison: Comparison, metric: str, labels: LabelDifferences, order: npt.NDArray[np.intp]
) -> bytes:
    """Draw the interval of each label, and return a PNG file."""
    height = 0.9 + 0.19 * len(order)
    figure = new_figure_in_plot_style(height)
    axes: Axes = figure.subplots()
    apply_plot_style_to_axes(axes)
    unit = describe_metric(metric).unit
    scale = 100 if unit in ("%", "points") else 1
    rows = np.arange(len(order))
    is_b_better = (labels.difference > 0) == (describe_metric(metric).better == "higher")
    colour_of = np.where(labels.is_different, np.where(is_b_better, BLUE, ORANGE), GREY)
    colours: list[str] = colour_of[order].tolist()
    low, high, middle = (
        scale * values[order] for values in (labels.low, labels.high, labels.difference)
    )
    axes.axvline(0, color=TEXT, linewidth=1)
    axes.hlines(rows, low, high, colors=colours, linewidth=2)
    axes.scatter(middle, rows, c=colours, s=16, zorder=3)
    names = [shorten_label_for_plot_style(comparison.names[column]) for column in order]
    axes.set_yticks(rows, names, fontsize=8)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set(ylim=(len(order) - 0.4, -0.6))
    axes.grid(False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(f"B − A, in {DIFFERENCE_UNITS.get(unit, unit)}", fontsize=9)
    return plot_style_figure_to_png(figure, left=0.32, bottom=0.6 / height, top=1 - 0.1 / height)
