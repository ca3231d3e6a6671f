"""Plot reliability diagrams of all decisions, with the band of calibrated probabilities."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binom

from surelabel.arrays import Array
from surelabel.metrics import ReliabilityBins
from surelabel.report.plot_style import (
    BAND,
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    abbreviate_count_for_plot_style,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_log_count_axis,
    set_plot_style_percent_ticks,
)

BINS = 15
BAND_QUANTILES = (0.025, 0.975)  # the band contains 95 % of the points of calibrated probabilities
CAPTION = (
    "On the dashed line, probabilities are perfectly calibrated: 30 % of the decisions with a "
    "probability of 30 % are positive. Below the line, probabilities are too high; above the line, "
    "probabilities are too low. A deviation within the band may be noise."
)


def reliability_diagram_consistency_band(bins: ReliabilityBins) -> tuple[Array, Array]:
    """Return a 95 % interval of the fraction of positives in each bin for calibrated probabilities.

        count · accuracy ~ Binomial(count, confidence)

    Here, count is the number of decisions in a bin, accuracy is the fraction of positives, and
    confidence is the mean probability. Decisions are treated as independent.

    Args:
        bins: Reliability bins. Only their counts and mean probabilities are used.

    Returns:
        Lower and upper bound of the fraction of positives in each bin. If a bin is empty, the
        bounds are NaN.

    Example:
        >>> bins = ReliabilityBins(np.array([100.0, 0.0]), np.array([0.5, np.nan]), np.zeros(2))
        >>> reliability_diagram_consistency_band(bins)
        (array([0.4, nan]), array([0.6, nan]))
    """
    counts = np.where(bins.counts > 0, bins.counts, np.nan)
    low, high = (binom.ppf(q, counts, bins.confidence) / counts for q in BAND_QUANTILES)
    return low, high


def plot_pooled_reliability_diagram(
    bins: ReliabilityBins, note: str, *, name: str = "reliability", title: str
) -> Plot:
    """Plot the reliability diagram of all decisions, above a histogram of the bin counts.

    Args:
        bins: Reliability bins of all decisions with known targets.
        note: Description of the bins, printed below the diagram.
        name: File name of the plot without suffix.
        title: Title of the plot.
    """
    points = [
        f"at a probability of {100 * confidence:.0f} %, {100 * accuracy:.0f} % of {count:,.0f} "
        "decisions are positive"
        for confidence, accuracy, count in _filled_reliability_diagram_bins(bins)
    ]
    alt = f"Reliability diagram. {'; '.join(points)}."
    diagram = draw_reliability_diagram([("this recognizer", bins)], note)
    return Plot(name, title, alt, CAPTION, diagram)


def describe_reliability_diagram_bins(n_images: int, n_labels: int, n_known: int) -> str:
    """Return the note below a reliability diagram, which describes the bins and the decisions.

    Args:
        n_images: Number of images.
        n_labels: Number of labels.
        n_known: Number of decisions with a known target.
    """
    return (
        f"The probabilities of {n_known:,} decisions with known targets ({n_images:,} images x "
        f"{n_labels:,} labels) are grouped into {BINS} equal-width bins. The x value of a point is "
        "the mean probability in the bin. If the probabilities are calibrated and the decisions "
        "are independent, the band contains 95 % of the points. Counts are on a logarithmic scale."
    )


def draw_reliability_diagram(curves: Sequence[tuple[str, ReliabilityBins]], note: str) -> bytes:
    """Plot one or two reliability curves, with the consistency band of the first curve, as PNG.

    Args:
        curves: Title and bins of each curve. The second curve is dashed, with squares.
        note: Text below the diagram.
    """
    figure = new_figure_in_plot_style(6.4)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=[3.4, 1])
    apply_plot_style_to_axes(upper)
    draw_reliability_diagram_diagonal(upper)
    styles = ((BLUE, "o", "-", True), (ORANGE, "s", "--", False))
    for (title, bins), (colour, marker, line, with_band) in zip(curves, styles, strict=False):
        is_filled = bins.counts > 0
        if with_band:
            low, high = (bound[is_filled] for bound in reliability_diagram_consistency_band(bins))
            x = bins.confidence[is_filled]
            upper.fill_between(
                x, low, high, color=BAND, linewidth=0, label="perfect calibration, 95 %"
            )
        upper.plot(
            bins.confidence[is_filled],
            bins.accuracy[is_filled],
            marker + line,
            color=colour,
            markersize=5,
            label=title,
            clip_on=False,
        )
    upper.set(xlim=(0, 1), ylim=(0, 1), ylabel="fraction of positives")
    upper.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9)
    set_plot_style_percent_ticks(upper.yaxis)
    _draw_reliability_diagram_counts(lower, [bins for _, bins in curves])
    return plot_style_figure_to_png(figure, left=0.13, bottom=0.1, top=0.98, note=note)


def draw_reliability_diagram_diagonal(axes: Axes) -> None:
    """Plot the diagonal, which is perfect calibration."""
    dashes = (0, (4, 3))
    axes.plot(
        [0, 1], [0, 1], color=TEXT, linewidth=1, linestyle=dashes, label="perfect calibration"
    )


def _draw_reliability_diagram_counts(axes: Axes, curves: Sequence[ReliabilityBins]) -> None:
    first, *others = (bins.counts for bins in curves)
    centers = (np.arange(len(first)) + 0.5) / len(first)
    apply_plot_style_to_axes(axes)
    axes.bar(centers, first, width=0.86 / len(first), color=BLUE, alpha=0.55)
    for counts in others:
        axes.stairs(counts, np.linspace(0, 1, len(first) + 1), color=ORANGE, linestyle="--")
    for x, count in zip(centers, first, strict=True):
        if count and not others:
            text = abbreviate_count_for_plot_style(count)
            axes.text(x, count * 1.3, text, color=TEXT, fontsize=7, ha="center")
    axes.set(xlabel="probability", ylabel="decisions")
    set_plot_style_log_count_axis(axes, max(float(bins.counts.max()) for bins in curves))
    set_plot_style_percent_ticks(axes.xaxis)


def _filled_reliability_diagram_bins(bins: ReliabilityBins) -> list[tuple[float, float, float]]:
    """Return mean probability, fraction of positives and count of each bin that is not empty."""
    is_filled = bins.counts > 0
    columns = (bins.confidence[is_filled], bins.accuracy[is_filled], bins.counts[is_filled])
    return list(zip(*columns, strict=True))
