"""Reliability diagrams: what was claimed against what was true, pooled over all decisions."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binom

from surelabel.evaluation import Evaluation
from surelabel.metrics import Reliability, reliability
from surelabel.records import Array
from surelabel.report.drawing import (
    BAND,
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    drawn,
    percent,
    powers,
    sheet,
    short,
    style,
)

BINS = 15
CHANCE = (0.025, 0.975)  # quantiles of the band: it holds 95 of 100 honest points
CAPTION = (
    "On the dashed line, labels given 30 % are there 30 times of 100. Below it the recognizer "
    "claims too much, above it too little. Points inside the band could be chance alone."
)


def reliability_of(evaluation: Evaluation) -> Reliability:
    """All known decisions in ``BINS`` bins."""
    probabilities = evaluation.predictions.probabilities
    return reliability(probabilities, evaluation.targets, evaluation.known, bins=BINS)


def band(found: Reliability) -> tuple[Array, Array]:
    """Where 95 of 100 points of a perfectly calibrated recognizer with these counts would lie.

        count · accuracy ~ Binomial(count, confidence), decisions taken as independent

    Returns:
        The lowest and the highest such accuracy of each bin, NaN where it is empty.

    Example:
        >>> bins = Reliability(np.array([100.0, 0.0]), np.array([0.5, np.nan]), np.zeros(2))
        >>> band(bins)
        (array([0.4, nan]), array([0.6, nan]))
    """
    counts = np.where(found.counts > 0, found.counts, np.nan)
    low, high = (binom.ppf(q, counts, found.confidence) / counts for q in CHANCE)
    return low, high


def pooled_plot(evaluation: Evaluation, name: str, title: str) -> Plot:
    """Claimed against true share of positives with its band, and the count of each bin below."""
    found = reliability_of(evaluation)
    points = [
        f"{100 * claimed:.0f} % claimed, {100 * true:.0f} % true in {count:,.0f} decisions"
        for claimed, true, count in _points(found)
    ]
    alt = f"Reliability diagram. {'; '.join(points)}."
    note = conventions(evaluation)
    return Plot(name, title, alt, CAPTION, diagram([("this recognizer", found)], note))


def conventions(evaluation: Evaluation) -> str:
    """What a diagram prints below itself: bins, what is claimed, and over what it is pooled."""
    n, c = evaluation.targets.shape
    return (
        f"{BINS} equal-width bins [k/{BINS}, (k+1)/{BINS}), the last one closed; probability that "
        f"the label is present, "
        f"pooled over {int(evaluation.known.sum()):,} known decisions of "
        f"{n:,} pictures x {c:,} labels; a point stands at its bin's mean; "
        f"band: 95 % of honest "
        f"points, decisions taken as independent; counts on a logarithmic scale"
    )


def diagram(curves: Sequence[tuple[str, Reliability]], note: str) -> bytes:
    """One or two curves with the band of the first, and counts below.

    Args:
        curves: What each is called, and its bins; the second is drawn broken, with squares.
        note: Printed below.
    """
    figure = sheet(6.4)
    above, below = figure.subplots(2, sharex=True, height_ratios=[3.4, 1])
    style(above)
    honest_line(above)
    marks = ((BLUE, "o", "-", True), (ORANGE, "s", "--", False))
    for (name, found), (colour, marker, line, first) in zip(curves, marks, strict=False):
        used = found.counts > 0
        if first:
            low, high = (edge[used] for edge in band(found))
            near = found.confidence[used]
            above.fill_between(near, low, high, color=BAND, linewidth=0, label="honest, by chance")
        above.plot(
            found.confidence[used],
            found.accuracy[used],
            marker + line,
            color=colour,
            markersize=5,
            label=name,
            clip_on=False,
        )
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="how often the label was there")
    above.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9)
    percent(above.yaxis)
    _counts(below, [found for _, found in curves])
    return drawn(figure, left=0.13, bottom=0.1, top=0.98, note=note)


def honest_line(axes: Axes) -> None:
    """The diagonal, where claims are true."""
    axes.plot([0, 1], [0, 1], color=TEXT, linewidth=1, linestyle=(0, (4, 3)), label="honest")


def _counts(axes: Axes, found: Sequence[Reliability]) -> None:
    after = found[0].counts
    middles = (np.arange(len(after)) + 0.5) / len(after)
    style(axes)
    axes.bar(middles, after, width=0.86 / len(after), color=BLUE, alpha=0.55)
    for before in found[1:]:
        axes.stairs(before.counts, np.linspace(0, 1, len(after) + 1), color=ORANGE, linestyle="--")
    for x, count in zip(middles, after, strict=True):
        if count and len(found) == 1:
            axes.text(x, count * 1.3, short(count), color=TEXT, fontsize=7, ha="center")
    axes.set(xlabel="probability that was claimed", ylabel="decisions")
    powers(axes, max(float(bins.counts.max()) for bins in found))
    percent(axes.xaxis)


def _points(found: Reliability) -> list[tuple[float, float, float]]:
    used = found.counts > 0
    columns = (found.confidence[used], found.accuracy[used], found.counts[used])
    return list(zip(*columns, strict=True))
