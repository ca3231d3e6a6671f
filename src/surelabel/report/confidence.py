"""How sure a recognizer is of labels that are there, and of labels that are not."""

import numpy as np

from surelabel.evaluation import Evaluation
from surelabel.records import Array
from surelabel.report.drawing import BLUE, ORANGE, TEXT, Plot, drawn, percent, powers, sheet, style

BARS = 25


def confidence_plot(evaluation: Evaluation) -> Plot:
    """Two histograms of probabilities, of labels that are there and of those that are not."""
    probabilities, known = evaluation.predictions.probabilities, evaluation.known
    there = evaluation.targets >= 0.5
    present, absent = probabilities[known & there], probabilities[known & ~there]
    return Plot(
        "confidence",
        "How sure it is",
        f"Two histograms: {len(present):,} probabilities of labels that are there, {len(absent):,} "
        f"of labels that are not; counts on a logarithmic scale.",
        "The better a recognizer, the further right the upper bars and the further left the lower "
        "ones. Each line up means ten times as many.",
        histograms(present, absent),
    )


def histograms(present: Array, absent: Array) -> bytes:
    """How many probabilities lie where, on a logarithmic scale.

    Args:
        present: Probabilities of the labels that are there.
        absent: Probabilities of the labels that are not.
    """
    figure = sheet(5.7)
    above, below = figure.subplots(2, sharex=True, sharey=True)
    edges = np.linspace(0, 1, BARS + 1)
    heights = [np.histogram(values, edges)[0] for values in (present, absent)]
    kinds = (f"labels that are there: {len(present):,}", f"labels that are not: {len(absent):,}")
    for axes, height, kind, colour in zip(
        (above, below), heights, kinds, (BLUE, ORANGE), strict=True
    ):
        style(axes)
        axes.bar(edges[:-1], height, 0.88 / BARS, align="edge", color=colour)
        axes.set_title(kind, color=TEXT, fontsize=10, loc="left")
        axes.set(xlim=(0, 1), ylabel="how many")
        powers(axes, np.max(heights))
    below.set_xlabel("probability that was claimed")
    percent(below.xaxis)
    return drawn(figure, left=0.13, bottom=0.1, top=0.94)
