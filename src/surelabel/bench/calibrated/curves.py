"""Plot reliability, retrieval and sensitivity of the calibration comparison by dataset."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from surelabel.bench.calibrated.plan import PLOTTED_ROWS
from surelabel.bench.calibrated.results import CalibrationResults
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    PAPER,
    TEXT,
    apply_plot_style_to_axes,
    plot_style_figure_to_png,
    set_plot_style_percent_ticks,
)
from surelabel.report.reliability_diagram import draw_reliability_diagram_diagonal

SIZE = (16.0, 5.4)  # inches of the plots of one dataset
COLOURS = (TEXT, ORANGE, BLUE, "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
RETRIEVAL_CURVES = ("BCE", "ASY", "ASY + detached map", "SPA", "SPA + LPR")
NOTE = (
    "All plots show the first fit. In the reliability plot, the predictions for all labels are "
    "pooled in 15 bins of equal width. Each point is the mean of one bin. In the retrieval plot, "
    "error bars extend two standard errors of the mean over sampled queries to each side. The "
    "right plot changes one setting of SPA at a time, and a filled point marks the value of the "
    "SPA paper."
)
PAPER_SETTINGS = {"zeta_neg": 5.0, "k_neg": 3.0, "b_neg": 1.0}


def plot_calibrated_curves(results: Sequence[CalibrationResults]) -> bytes:
    """Return a PNG with reliability, retrieval and sensitivity plots, one row per dataset."""
    height = SIZE[1] * len(results)
    figure = Figure(figsize=(SIZE[0], height), facecolor=PAPER)
    grid = figure.subplots(len(results), 3, squeeze=False)
    for result, (left, middle, right) in zip(results, grid, strict=True):
        _plot_calibrated_reliability_curves(left, result)
        _plot_calibrated_retrieval_curves(middle, result)
        _plot_calibrated_sensitivity_curves(right, result)
        left.set_title(f"{result.dataset}: reliability", color=TEXT, fontsize=11, loc="left")
        middle.set_title("Retrieval by conjunctions", color=TEXT, fontsize=11, loc="left")
        right.set_title("SPA with one setting changed", color=TEXT, fontsize=11, loc="left")
    return plot_style_figure_to_png(
        figure, left=0.05, bottom=0.45 / height, top=1 - 0.35 / height, note=NOTE
    )


def _plot_calibrated_reliability_curves(axes: Axes, results: CalibrationResults) -> None:
    apply_plot_style_to_axes(axes)
    draw_reliability_diagram_diagonal(axes)
    styles = dict(zip(results.reliability, zip(COLOURS, MARKERS, strict=True), strict=False))
    for title, bins in results.reliability.items():
        colour, marker = styles[title]
        is_used = bins.counts > 0
        line = "-" if title in PLOTTED_ROWS else "--"
        axes.plot(
            bins.confidence[is_used],
            bins.accuracy[is_used],
            marker + line,
            color=colour,
            markersize=5,
            label=f"{title} (ACE {100 * results.row(title).metrics['ace'][0]:.1f})",
        )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability")
    axes.set_ylabel("fraction of positive targets")
    set_plot_style_percent_ticks(axes.xaxis)
    set_plot_style_percent_ticks(axes.yaxis)
    axes.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9)


def _plot_calibrated_retrieval_curves(axes: Axes, results: CalibrationResults) -> None:
    apply_plot_style_to_axes(axes)
    offsets = np.linspace(-0.1, 0.1, len(RETRIEVAL_CURVES))  # separate overlapping error bars
    for title, offset, colour, marker in zip(
        RETRIEVAL_CURVES, offsets, COLOURS, MARKERS, strict=False
    ):
        curve = results.retrieval[title]
        axes.errorbar(
            np.array(curve["length"]) + offset,
            100 * np.array(curve["map"], float),
            yerr=200 * np.array(curve["standard_error"], float),
            fmt=f"{marker}-",
            color=colour,
            markersize=5,
            capsize=3,
            label=title,
        )
    axes.set_xticks(results.retrieval[RETRIEVAL_CURVES[0]]["length"])
    axes.set(xlabel="labels in the query", ylabel="mAP of queries, %")
    axes.margins(x=0.08)
    axes.legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=9)


def _plot_calibrated_sensitivity_curves(axes: Axes, results: CalibrationResults) -> None:
    apply_plot_style_to_axes(axes)
    ticks: list[str] = []
    colours = (ORANGE, BLUE, TEXT)
    for (setting, paper_value), colour in zip(PAPER_SETTINGS.items(), colours, strict=True):
        entries = [entry for entry in results.sensitivity if entry["setting"] == setting]
        positions = len(ticks) + np.arange(len(entries))
        ace = [100 * entry["ace"] for entry in entries]
        axes.plot(positions, ace, "o-", color=colour, markerfacecolor=PAPER, label=setting)
        paper = [entry["value"] for entry in entries].index(paper_value)
        axes.plot(positions[paper], ace[paper], "o", color=colour)
        ticks += [f"{entry['value']:g}" for entry in entries]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set(xlabel="value of the setting", ylabel="ACE, points")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=9)
