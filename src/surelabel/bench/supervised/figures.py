"""Plot metrics of the supervised comparison against the number of labelled images."""

from collections.abc import Sequence
from statistics import stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from surelabel.bench.supervised.metrics import MAP
from surelabel.bench.supervised.plan import LABEL_FREE_METHODS
from surelabel.bench.supervised.results import SupervisedResults
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    PAPER,
    TEXT,
    apply_plot_style_to_axes,
    plot_style_figure_to_png,
)

SIZE = (11.0, 4.8)  # inches of the plots of one encoder
COLOURS = ("#7a7a7a", "#8a6d00", "#009e73", TEXT, BLUE, ORANGE, "#cc79a7", "#56b4e9", "#332288")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h")
PLOTTED_METRICS = {MAP: "mAP, %", "brier_skill": "Brier skill, %"}
NOTE = (
    "Each recognizer is fitted and calibrated on the same labelled images. Lines are means over "
    "seeds; bars are standard deviations over seeds. Dashed lines are label-free methods, which "
    "are only calibrated."
)


def plot_supervised_curves(results: Sequence[SupervisedResults]) -> bytes:
    """Return a PNG with mAP and Brier skill, with one row of plots per encoder."""
    height = SIZE[1] * len(results)
    figure = Figure(figsize=(SIZE[0], height), facecolor=PAPER)
    grid = figure.subplots(len(results), len(PLOTTED_METRICS), squeeze=False)
    for result, row in zip(results, grid, strict=True):
        for axes, (metric, label) in zip(row, PLOTTED_METRICS.items(), strict=True):
            _plot_metric(axes, result, metric)
            axes.set(xlabel="labelled images (logarithmic axis)", ylabel=label)
            axes.set_title(result.dataset, color=TEXT, fontsize=11, loc="left")
        legend = row[0].legend(loc="lower right", labelcolor=TEXT, fontsize=9)
        legend.get_frame().set(facecolor=PAPER, edgecolor="none", alpha=0.9)  # above the lines
    return plot_style_figure_to_png(
        figure, left=0.07, bottom=0.6 / height, top=1 - 0.35 / height, note=NOTE
    )


def _plot_metric(axes: Axes, results: SupervisedResults, metric: str) -> None:
    apply_plot_style_to_axes(axes)
    for method, colour, marker in zip(results.plan.methods, COLOURS, MARKERS, strict=False):
        rows = results.rows_of_method(method)
        axes.errorbar(
            [row.n_images for row in rows],
            [100 * row.mean(metric) for row in rows],
            yerr=[100 * _deviation(row.metrics[metric]) for row in rows],
            fmt=marker + ("--" if method in LABEL_FREE_METHODS else "-"),
            color=colour,
            markersize=5,
            capsize=3,
            label=method,
        )
    counts = results.plan.image_counts
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(counts, [f"{count:,}" for count in counts])


def _deviation(values: Sequence[float]) -> float:
    """Return the standard deviation over seeds, 0 for one seed."""
    return stdev(values) if len(values) > 1 else 0.0
