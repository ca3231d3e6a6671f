"""Plot small reliability diagrams of the labels with the most positives."""

import numpy as np
from matplotlib.axes import Axes

from surelabel.metrics import ReliabilityBins
from surelabel.report.label_table import LabelStatistics
from surelabel.report.metric_descriptions import format_described_metric_with_unit
from surelabel.report.plot_style import (
    BAND,
    BLUE,
    PAPER,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    shorten_label_for_plot_style,
)
from surelabel.report.reliability_diagram import (
    BINS,
    draw_reliability_diagram_diagonal,
    reliability_diagram_consistency_band,
)

MAX_LABELS = 20
COLUMNS = 3  # panels in a row
PANEL = 1.75  # height of a panel in inches
COUNT_HEIGHT = 0.26  # height of the bars of counts, relative to a diagram of height 1
LABEL_LENGTH = 16  # characters of a label above a panel


def plot_reliability_per_label(labels: LabelStatistics, bins: ReliabilityBins) -> Plot | None:
    """Plot one reliability diagram for each of the labels with the most positives.

    Args:
        labels: Statistics of the labels.
        bins: Reliability bins of each label, with arrays of shape ``(c, bins)``.

    Returns:
        Plot of up to ``MAX_LABELS`` labels, or None if no target is positive.
    """
    n_positives, names = labels.n_positives, labels.names
    n_shown = min(MAX_LABELS, int((n_positives > 0).sum()))
    order = np.argsort(-n_positives, kind="stable")[:n_shown]
    if not n_shown:
        return None
    titles = [
        f"{shorten_label_for_plot_style(names[c], LABEL_LENGTH)}: {n_positives[c]:,.0f}"
        for c in order
    ]
    descriptions = [
        f"{names[c]}, {n_positives[c]:,.0f} positives, "
        f"ECE {format_described_metric_with_unit(labels.ece[c], 'points')}"
        for c in order
    ]
    n_omitted = len(names) - n_shown
    omitted = f" Labels with fewer positives are omitted ({n_omitted:,})." if n_omitted else ""
    return Plot(
        "reliability_per_label",
        f"Calibration of the {n_shown} labels with the most positives",
        f"{n_shown} small reliability diagrams. {'; '.join(descriptions)}.",
        "The number after a label is its number of positive images. With few images, the band is "
        "wide. A hollow point is inside the band, and its deviation may be noise. A filled point "
        "is outside the band. The bars show the number of decisions in each bin, on a logarithmic "
        f"scale.{omitted}",
        _draw_reliability_per_label_grid(
            titles, [_bins_for_reliability_per_label(bins, c) for c in order], n_omitted
        ),
    )


def _bins_for_reliability_per_label(bins: ReliabilityBins, column: int) -> ReliabilityBins:
    return ReliabilityBins(bins.counts[column], bins.confidence[column], bins.accuracy[column])


def _draw_reliability_per_label_grid(
    titles: list[str], bins_of_labels: list[ReliabilityBins], n_omitted: int
) -> bytes:
    n_rows = -(-len(bins_of_labels) // COLUMNS)
    height = PANEL * n_rows + 1.2
    figure = new_figure_in_plot_style(height)
    panels = figure.subplots(n_rows, COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    greatest = max(float(bins.counts.max()) for bins in bins_of_labels)
    for axes, title, bins in zip(panels, titles, bins_of_labels, strict=False):
        _draw_reliability_per_label_panel(axes, title, bins, greatest)
    panels[0].set(xlim=(-0.03, 1.03), ylim=(-COUNT_HEIGHT, 1.03))  # shared by all panels
    panels[0].set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=8)
    panels[0].set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=8)
    for axes in panels[len(bins_of_labels) :]:
        axes.set_axis_off()
    note = (
        f"The probabilities (x axis) are grouped into {BINS} equal-width bins; the y axis is the "
        "fraction of positives. For calibrated probabilities, the vertical bands contain 95 % of "
        "the points. Filled points are outside the bands. The bars show the number of decisions in "
        f"each bin, at most {greatest:,.0f}, on a logarithmic scale. Number of omitted labels: "
        f"{n_omitted:,}."
    )
    return plot_style_figure_to_png(
        figure, left=0.1, bottom=0.3 / height, top=1 - 0.25 / height, note=note
    )


def _draw_reliability_per_label_panel(
    axes: Axes, title: str, bins: ReliabilityBins, greatest: float
) -> None:
    is_filled = bins.counts > 0
    low, high = (bound[is_filled] for bound in reliability_diagram_consistency_band(bins))
    confidence, accuracy = bins.confidence[is_filled], bins.accuracy[is_filled]
    is_inside = (low <= accuracy) & (accuracy <= high)
    apply_plot_style_to_axes(axes)
    axes.tick_params(labelsize=8)
    axes.vlines(confidence, low, high, color=BAND, linewidth=5)
    draw_reliability_diagram_diagonal(axes)
    for selected, facecolor in ((is_inside, PAPER), (~is_inside, BLUE)):
        axes.scatter(
            confidence[selected],
            accuracy[selected],
            s=14,
            facecolor=facecolor,
            edgecolor=BLUE,
            clip_on=False,
        ).set_zorder(3)
    bars = 0.9 * COUNT_HEIGHT * np.log1p(bins.counts) / np.log1p(greatest) - COUNT_HEIGHT
    edges = np.linspace(0, 1, BINS + 1)
    axes.stairs(bars, edges, baseline=-COUNT_HEIGHT, fill=True, color=BLUE, alpha=0.55)
    axes.set_title(title, color=TEXT, fontsize=8.5, pad=3).set_parse_math(False)
