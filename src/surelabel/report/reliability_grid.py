"""A small reliability diagram of each label, for the labels with the most positives."""

import numpy as np
from matplotlib.axes import Axes

from surelabel.evaluation import Evaluation
from surelabel.metrics import Reliability, reliability_per_class
from surelabel.report.drawing import BAND, BLUE, PAPER, TEXT, Plot, drawn, sheet, shortened, style
from surelabel.report.labels import of_each_label, positives
from surelabel.report.meanings import measured
from surelabel.report.reliability import BINS, band, honest_line

SHOWN = 20
ACROSS = 3
PANEL = 1.75  # inches
STRIP = 0.26  # height of the counts below 0, the diagram having height 1
NAME = 16  # letters of a name above a panel


def grid_plot(evaluation: Evaluation) -> Plot | None:
    """Up to ``SHOWN`` labels, those with the most positives; None where nothing is positive."""
    count = positives(evaluation)
    order = np.argsort(-count, kind="stable")[: min(SHOWN, int((count > 0).sum()))]
    if not len(order):
        return None
    whole = per_label(evaluation)
    names = evaluation.predictions.names
    heads = [f"{shortened(names[c], NAME)}: {count[c]:,.0f}" for c in order]
    ece = of_each_label(evaluation, "ece")
    told = [
        f"{names[c]}, {count[c]:,.0f} positives, ECE {measured(ece[c], 'points')}" for c in order
    ]
    left_out = len(names) - len(order)
    rest = f" {left_out:,} labels with fewer positives are left out." if left_out else ""
    return Plot(
        "reliability_by_label",
        f"Is each label honest? The {len(order)} with the most positives",
        f"{len(order)} small reliability diagrams. {'; '.join(told)}.",
        "The number after a name says how many pictures have the label. Few pictures make a wide "
        "band; a hollow dot inside it could be chance alone, a filled one hardly. The bars say how "
        f"many decisions each dot is made of, on a logarithmic scale.{rest}",
        _grid(heads, [_only(whole, c) for c in order], left_out),
    )


def per_label(evaluation: Evaluation) -> Reliability:
    """The known decisions of each label in ``BINS`` bins, ``(c, bins)``."""
    probabilities = evaluation.predictions.probabilities
    return reliability_per_class(probabilities, evaluation.targets, evaluation.known, bins=BINS)


def _only(whole: Reliability, c: int) -> Reliability:
    return Reliability(whole.counts[c], whole.confidence[c], whole.accuracy[c])


def _grid(heads: list[str], labels: list[Reliability], left_out: int) -> bytes:
    down = -(-len(labels) // ACROSS)
    height = PANEL * down + 1.2
    figure = sheet(height)
    panels = figure.subplots(down, ACROSS, sharex=True, sharey=True, squeeze=False).ravel()
    most = max(float(found.counts.max()) for found in labels)
    for axes, head, found in zip(panels, heads, labels, strict=False):
        _panel(axes, head, found, most)
    panels[0].set(xlim=(-0.03, 1.03), ylim=(-STRIP, 1.03))  # all of them share these
    panels[0].set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=8)
    panels[0].set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=8)
    for axes in panels[len(labels) :]:
        axes.set_axis_off()
    note = (
        f"{BINS} equal-width bins; across: probability that the label is present; up: how often it "
        "was there; upright bands: 95 % of honest points, a filled dot lies outside; bars: "
        f"decisions on a logarithmic scale, the longest {most:,.0f}; {left_out:,} labels left out"
    )
    return drawn(figure, left=0.1, bottom=0.3 / height, top=1 - 0.25 / height, note=note)


def _panel(axes: Axes, head: str, found: Reliability, most: float) -> None:
    used = found.counts > 0
    low, high = (edge[used] for edge in band(found))
    claimed, true = found.confidence[used], found.accuracy[used]
    inside = (low <= true) & (true <= high)
    style(axes)
    axes.tick_params(labelsize=8)
    axes.vlines(claimed, low, high, color=BAND, linewidth=5)
    honest_line(axes)
    for those, filling in ((inside, PAPER), (~inside, BLUE)):
        axes.scatter(
            claimed[those], true[those], s=14, facecolor=filling, edgecolor=BLUE, clip_on=False
        ).set_zorder(3)
    bars = 0.9 * STRIP * np.log1p(found.counts) / np.log1p(most) - STRIP
    edges = np.linspace(0, 1, BINS + 1)
    axes.stairs(bars, edges, baseline=-STRIP, fill=True, color=BLUE, alpha=0.55)
    axes.set_title(head, color=TEXT, fontsize=8.5, pad=3).set_parse_math(False)
