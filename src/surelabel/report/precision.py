"""Average precision label by label."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from surelabel.evaluation import Evaluation
from surelabel.records import Array
from surelabel.report.drawing import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    drawn,
    percent,
    sheet,
    shortened,
    style,
)
from surelabel.report.labels import of_each_label, prevalence

ALL_NAMED = 40  # labels that still fit one below the other
ENDS = 15  # labels named at each end when they do not


def precision_plot(evaluation: Evaluation) -> Plot | None:
    """The best label first; None where no label has an average precision."""
    names, precision = evaluation.predictions.names, of_each_label(evaluation, "average_precision")
    if np.isnan(precision).all():
        return None
    best, worst = names[int(np.nanargmax(precision))], names[int(np.nanargmin(precision))]
    alt = (
        f"Bars of average precision, the best label first: {best} with "
        f"{100 * np.nanmax(precision):.0f} %, the last is {worst} with "
        f"{100 * np.nanmin(precision):.0f} %."
    )
    return Plot(
        "per_class",
        "Which labels are found well",
        alt,
        "Each bar is one label. The upright mark is what guessing would reach: the share of "
        "pictures that have the label.",
        bars(names, precision, prevalence(evaluation)),
    )


def bars(names: Sequence[str], precision: Array, prevalence: Array) -> bytes:
    """Average precision of each label, the best first, and what guessing would reach.

    Args:
        names: The labels, c of them.
        precision: Average precision, NaN where undefined, ``(c,)``.
        prevalence: Share of pictures with the label, ``(c,)``.
    """
    order = np.argsort(-precision, kind="stable")[: int((~np.isnan(precision)).sum())]
    if len(order) <= ALL_NAMED:
        height = 0.9 + 0.19 * len(order)
        figure = sheet(height)
        _bars(figure.subplots(), names, precision, prevalence, order)
        return drawn(figure, left=0.32, bottom=0.6 / height, top=1 - 0.1 / height)
    figure = sheet(8.4)
    whole, best, worst = figure.subplots(3, height_ratios=[1.1, 2, 2])
    _profile(whole, precision[order], prevalence[order])
    _bars(best, names, precision, prevalence, order[:ENDS])
    _bars(worst, names, precision, prevalence, order[-ENDS:])
    best.set_title(f"the best {ENDS}", color=TEXT, fontsize=9.5, loc="left")
    worst.set_title(f"the worst {ENDS}", color=TEXT, fontsize=9.5, loc="left")
    best.set_xlabel("")
    return drawn(figure, left=0.32, bottom=0.07, top=0.97)


def _bars(
    axes: Axes,
    names: Sequence[str],
    precision: Array,
    prevalence: Array,
    order: npt.NDArray[np.int64],
) -> None:
    rows = np.arange(len(order))
    style(axes)
    axes.barh(rows, precision[order], height=0.72, color=BLUE, alpha=0.8)
    axes.vlines(prevalence[order], rows - 0.4, rows + 0.4, color=ORANGE, linewidth=2)
    shown = [shortened(names[c]) for c in order]
    axes.set_yticks(rows, shown, fontsize=8)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set(xlim=(0, 1), ylim=(len(order) - 0.4, -0.6))
    axes.grid(False, axis="y")
    axes.set_xlabel("average precision; orange: what guessing reaches", fontsize=9)
    percent(axes.xaxis)


def _profile(axes: Axes, precision: Array, prevalence: Array) -> None:
    ranks = np.arange(len(precision) + 1)
    style(axes)
    axes.stairs(precision, ranks, fill=True, color=BLUE, alpha=0.8)
    axes.stairs(prevalence, ranks, color=ORANGE, linewidth=1.2)
    axes.set(xlim=(0, len(precision)), ylim=(0, 1))
    axes.set_title(f"all {len(precision)} labels", color=TEXT, fontsize=9.5, loc="left")
    percent(axes.yaxis)
