"""The figure of a comparison: a line of plots for each data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from surelabel.bench.calibrated.plan import DRAWN
from surelabel.bench.calibrated.results import Results
from surelabel.report.drawing import BLUE, ORANGE, PAPER, TEXT, drawn, percent, style
from surelabel.report.reliability import honest_line

SIZE = (16.0, 5.4)  # inches of one line of plots
COLOURS = (TEXT, ORANGE, BLUE, "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
FOUND = ("BCE", "ASY", "ASY + detached map", "SPA", "SPA + LPR")  # of retrieval
NOTE = (
    "Reliability: 15 bins of equal width, pooled over all labels, first fit; a point stands at its "
    "bin's mean. Retrieval: first fit, bars are two standard errors of drawing queries. "
    "Sensitivity: one setting of SPA changed at a time, first fit; filled points are the paper's."
)
PAPER_SETTING = {"zeta_neg": 5.0, "k_neg": 3.0, "b_neg": 1.0}


def curves(found: Sequence[Results]) -> bytes:
    """The PNG."""
    height = SIZE[1] * len(found)
    figure = Figure(figsize=(SIZE[0], height), facecolor=PAPER)
    grid = figure.subplots(len(found), 3, squeeze=False)
    for results, (left, middle, right) in zip(found, grid, strict=True):
        _reliability(left, results)
        _retrieval(middle, results)
        _sensitivity(right, results)
        left.set_title(f"{results.material}: reliability", color=TEXT, fontsize=11, loc="left")
        middle.set_title("Conjunctions of labels", color=TEXT, fontsize=11, loc="left")
        right.set_title("SPA with one setting changed", color=TEXT, fontsize=11, loc="left")
    return drawn(figure, left=0.05, bottom=0.45 / height, top=1 - 0.35 / height, note=NOTE)


def _reliability(axes: Axes, results: Results) -> None:
    style(axes)
    honest_line(axes)
    looks = dict(zip(results.reliability, zip(COLOURS, MARKS, strict=True), strict=False))
    for title, bins in results.reliability.items():
        colour, mark = looks[title]
        used = bins.counts > 0
        line = "-" if title in DRAWN else "--"
        axes.plot(
            bins.confidence[used],
            bins.accuracy[used],
            mark + line,
            color=colour,
            markersize=5,
            label=f"{title} (ACE {100 * results.row(title).values['ace'][0]:.1f})",
        )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability that was claimed")
    axes.set_ylabel("how often the label was there")
    percent(axes.xaxis)
    percent(axes.yaxis)
    axes.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9)


def _retrieval(axes: Axes, results: Results) -> None:
    style(axes)
    shift = np.linspace(-0.1, 0.1, len(FOUND))  # beside each other where they would hide
    for title, aside, colour, mark in zip(FOUND, shift, COLOURS, MARKS, strict=False):
        found = results.retrieval[title]
        axes.errorbar(
            np.array(found["length"]) + aside,
            100 * np.array(found["map"], float),
            yerr=200 * np.array(found["error"], float),
            fmt=f"{mark}-",
            color=colour,
            markersize=5,
            capsize=3,
            label=title,
        )
    axes.set_xticks(results.retrieval[FOUND[0]]["length"])
    axes.set(xlabel="labels in the query", ylabel="mAP of queries, %")
    axes.margins(x=0.08)
    axes.legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=9)


def _sensitivity(axes: Axes, results: Results) -> None:
    style(axes)
    ticks: list[str] = []
    for (key, paper), colour in zip(PAPER_SETTING.items(), (ORANGE, BLUE, TEXT), strict=True):
        own: list[dict[str, Any]] = [e for e in results.sensitivity if e["setting"] == key]
        at, ace = len(ticks) + np.arange(len(own)), [100 * e["ace"] for e in own]
        axes.plot(at, ace, "o-", color=colour, markerfacecolor=PAPER, label=key)
        here = [e["value"] for e in own].index(paper)
        axes.plot(at[here], ace[here], "o", color=colour)
        ticks += [f"{e['value']:g}" for e in own]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set(xlabel="value of the setting", ylabel="ACE, points")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=9)
