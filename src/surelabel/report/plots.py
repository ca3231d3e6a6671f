"""The plots of a report as PNG files.

Nothing here touches the state of pyplot, so that a notebook keeps its own figures.
"""

import warnings
from collections.abc import Sequence
from io import BytesIO

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from scipy.stats import binom

from surelabel.metrics import Reliability
from surelabel.records import Array

DPI = 144
WIDTH = 5.4  # inches: small, so that the letters are readable on a phone
ALL_NAMED = 40  # labels that still fit one below the other
ENDS = 15  # labels named at each end when they do not
BARS = 25  # of the histogram
NAME_LENGTH = 22
TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)


# Blue and orange stay apart for every kind of colour blindness. A dark page turns them around.
PAPER, TEXT, FAINT = "#ffffff", "#1d2430", "#d8dde5"
BLUE, ORANGE, BAND = "#0072b2", "#d55e00", "#dbe7f0"


def reliability_plot(found: Reliability) -> bytes:
    """Claimed against true share of positives, with the count of each bin below.

    The band holds 95 of 100 points of a perfectly calibrated recognizer with the same counts,
    if its decisions were independent.
    """
    figure = Figure(figsize=(WIDTH, 5.7), facecolor=PAPER)
    above, below = figure.subplots(2, sharex=True, height_ratios=[3.4, 1])
    used = found.counts > 0
    counts, claimed, true = found.counts[used], found.confidence[used], found.accuracy[used]
    low, high = (binom.ppf(q, counts, claimed) / counts for q in (0.025, 0.975))
    _style(above)
    above.plot([0, 1], [0, 1], color=TEXT, linewidth=1, linestyle=(0, (4, 3)), label="honest")
    above.fill_between(claimed, low, high, color=BAND, linewidth=0, label="honest, by chance")
    above.plot(claimed, true, "o-", color=BLUE, markersize=5, label="this recognizer")
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="how often the label was there")
    above.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9)
    _percent(above.yaxis)
    _counts(below, found)
    bins = len(found.counts)
    note = f"{bins} bins of equal width [k/{bins}, (k+1)/{bins}), the last one closed; all labels\n"
    note += "and pictures together; a point stands at the mean probability of its bin"
    figure.text(0.5, 0.005, note, color=TEXT, alpha=0.7, fontsize=7.5, ha="center")
    return _png(figure, left=0.13, bottom=0.14, top=0.98)


def _counts(axes: Axes, found: Reliability) -> None:
    bins = len(found.counts)
    middles = (np.arange(bins) + 0.5) / bins
    _style(axes)
    axes.bar(middles, found.counts, width=0.86 / bins, color=BLUE, alpha=0.55)
    for x, count in zip(middles, found.counts, strict=True):
        if count:
            axes.text(x, count * 1.3, short(count), color=TEXT, fontsize=7, ha="center")
    axes.set(xlabel="probability that was claimed", ylabel="decisions")
    _powers(axes, found.counts.max())
    _percent(axes.xaxis)


def confidence_plot(present: Array, absent: Array) -> bytes:
    """How many probabilities lie where, on a logarithmic scale.

    Args:
        present: Probabilities of the labels that are there.
        absent: Probabilities of the labels that are not.
    """
    figure = Figure(figsize=(WIDTH, 5.7), facecolor=PAPER)
    above, below = figure.subplots(2, sharex=True, sharey=True)
    edges = np.linspace(0, 1, BARS + 1)
    heights = [np.histogram(values, edges)[0] for values in (present, absent)]
    kinds = (f"labels that are there: {len(present):,}", f"labels that are not: {len(absent):,}")
    for axes, height, kind, colour in zip(
        (above, below), heights, kinds, (BLUE, ORANGE), strict=True
    ):
        _style(axes)
        axes.bar(edges[:-1], height, 0.88 / BARS, align="edge", color=colour)
        axes.set_title(kind, color=TEXT, fontsize=10, loc="left")
        axes.set(xlim=(0, 1), ylabel="how many")
        _powers(axes, np.max(heights))
    below.set_xlabel("probability that was claimed")
    _percent(below.xaxis)
    return _png(figure, left=0.13, bottom=0.1, top=0.94)


def per_class_plot(names: Sequence[str], precision: Array, prevalence: Array) -> bytes:
    """Average precision of each label, the best first, and what guessing would reach.

    Args:
        names: The labels, c of them.
        precision: Average precision, NaN where undefined, ``(c,)``.
        prevalence: Share of pictures with the label, ``(c,)``.
    """
    order = np.argsort(-precision, kind="stable")[: int((~np.isnan(precision)).sum())]
    if len(order) <= ALL_NAMED:
        height = 0.9 + 0.19 * len(order)
        figure = Figure(figsize=(WIDTH, height), facecolor=PAPER)
        _bars(figure.subplots(), names, precision, prevalence, order)
        return _png(figure, left=0.32, bottom=0.6 / height, top=1 - 0.1 / height)
    figure = Figure(figsize=(WIDTH, 8.4), facecolor=PAPER)
    whole, best, worst = figure.subplots(3, height_ratios=[1.1, 2, 2])
    _profile(whole, precision[order], prevalence[order])
    _bars(best, names, precision, prevalence, order[:ENDS])
    _bars(worst, names, precision, prevalence, order[-ENDS:])
    best.set_title(f"the best {ENDS}", color=TEXT, fontsize=9.5, loc="left")
    worst.set_title(f"the worst {ENDS}", color=TEXT, fontsize=9.5, loc="left")
    best.set_xlabel("")
    return _png(figure, left=0.32, bottom=0.07, top=0.97)


def _bars(
    axes: Axes,
    names: Sequence[str],
    precision: Array,
    prevalence: Array,
    order: npt.NDArray[np.int64],
) -> None:
    rows = np.arange(len(order))
    _style(axes)
    axes.barh(rows, precision[order], height=0.72, color=BLUE, alpha=0.8)
    axes.vlines(prevalence[order], rows - 0.4, rows + 0.4, color=ORANGE, linewidth=2)
    shown = [shortened(names[c]) for c in order]
    axes.set_yticks(rows, shown, fontsize=8)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set(xlim=(0, 1), ylim=(len(order) - 0.4, -0.6))
    axes.grid(False, axis="y")
    axes.set_xlabel("average precision; orange: what guessing reaches", fontsize=9)
    _percent(axes.xaxis)


def _profile(axes: Axes, precision: Array, prevalence: Array) -> None:
    ranks = np.arange(len(precision) + 1)
    _style(axes)
    axes.stairs(precision, ranks, fill=True, color=BLUE, alpha=0.8)
    axes.stairs(prevalence, ranks, color=ORANGE, linewidth=1.2)
    axes.set(xlim=(0, len(precision)), ylim=(0, 1))
    axes.set_title(f"all {len(precision)} labels", color=TEXT, fontsize=9.5, loc="left")
    _percent(axes.yaxis)


def shortened(name: str) -> str:
    """A name on one line that fits beside a bar.

    Example:
        >>> shortened("a name that goes on and on")
        'a name that goes on a…'
    """
    line = " ".join(name.split())
    return line if len(line) <= NAME_LENGTH else line[: NAME_LENGTH - 1] + "…"


def short(count: float) -> str:
    """A count in four characters or fewer.

    Example:
        >>> [short(n) for n in (7, 999, 1234, 45678, 2_000_000)]
        ['7', '999', '1.2k', '46k', '2M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            digits = 1 if count < 10 * size else 0
            return f"{count / size:.{digits}f}".removesuffix(".0") + letter
    return f"{count:.0f}"


def _percent(axis: Axis) -> None:
    axis.set_ticks(TICKS, [f"{100 * share:.0f} %" for share in TICKS])


def _powers(axes: Axes, greatest: float) -> None:
    """A logarithmic scale for counts up to ``greatest``."""
    ticks = 10.0 ** np.arange(1 + np.log10(max(greatest, 1)))
    axes.set_ylim(0.5, 8 * max(greatest, 1))
    axes.set_yscale("log", nonpositive="clip")
    axes.set_yticks(ticks, [short(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())


def _style(axes: Axes) -> None:
    axes.set_facecolor(PAPER)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=TEXT, labelsize=9, length=0)
    axes.xaxis.label.set(color=TEXT, fontsize=10)
    axes.yaxis.label.set(color=TEXT, fontsize=10)
    for side in axes.spines.values():
        side.set_visible(False)


def _png(figure: Figure, *, left: float, bottom: float, top: float) -> bytes:
    """The file; all three are shares of the figure, from its left and lower edge."""
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=left, bottom=bottom, right=0.96, top=top, hspace=0.22)
    file = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # names in any script
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()
