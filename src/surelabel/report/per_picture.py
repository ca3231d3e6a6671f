"""How many labels a picture gets, and how many it has."""

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import PercentFormatter

from surelabel.evaluation import Evaluation
from surelabel.records import Array
from surelabel.report.claims import ALONE, CALLED, NOW, TRUTH, Claims, claimed
from surelabel.report.drawing import BLUE, ORANGE, TEXT, Plot, drawn, sheet, style
from surelabel.report.meanings import chance

MOST = 12  # labels a picture that have bars of their own; more share the last
COLOURS = {ALONE: ORANGE, NOW: BLUE, TRUTH: TEXT}


def per_picture_plot(evaluation: Evaluation) -> Plot | None:
    """Histograms of labels a picture, shown and there; None without probabilities."""
    found = claimed(evaluation)
    if not found:
        return None
    numbers = {who: _whole(claims.counts.shown) for who, claims in found.items()}
    truth = found[NOW].counts
    numbers[TRUTH] = _whole(truth.present)
    shares = {who: of / len(evaluation.predictions) for who, of in _histograms(numbers).items()}
    return Plot(
        "labels_per_picture",
        "How many labels a picture gets",
        f"Shares of the pictures by how many labels they get. {_listed(shares)}",
        _caption(found, truth.means["present"]),
        _bars(shares, {who: float(np.mean(of)) for who, of in numbers.items()}),
    )


def _whole(counts: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    """Labels of each picture; graded truths are rounded."""
    assert counts is not None  # an evaluation has a truth
    return np.rint(counts).astype(np.int64)


def _histograms(numbers: dict[str, npt.NDArray[np.int64]]) -> dict[str, Array]:
    """Pictures with 0, 1, 2 … labels, those with ``MOST`` or more together, all of one length."""
    most = min(MOST, max(int(of.max()) for of in numbers.values()))
    return {
        who: np.bincount(np.minimum(of, most), minlength=most + 1).astype(np.float64)
        for who, of in numbers.items()
    }


def _caption(found: dict[str, Claims], there: float) -> str:
    told = [
        f"{claims.counts.means['expected']:.2f} by {CALLED[who]}, which shows as many from "
        f"{chance(claims.threshold)} up"
        for who, claims in found.items()
    ]
    return (
        f"A picture has {there:.2f} labels on average. Expected are {', and '.join(told)}. A bar "
        "says in how many pictures so many are shown, or there."
    )


def _listed(shares: dict[str, Array]) -> str:
    lines = [
        f"{who}: " + ", ".join(f"{100 * share:.0f} % have {k}" for k, share in enumerate(of))
        for who, of in shares.items()
    ]
    return f"{'; '.join(lines)}."


def _bars(shares: dict[str, Array], means: dict[str, float]) -> bytes:
    figure = sheet(3.9)
    axes = figure.subplots()
    style(axes)
    places = np.arange(len(next(iter(shares.values()))))
    width = 0.84 / len(shares)
    for i, (who, share) in enumerate(shares.items()):
        left = places + (i - (len(shares) - 1) / 2) * width
        label = f"{who}: {means[who]:.2f} on average"
        axes.bar(left, share, 0.92 * width, color=COLOURS[who], label=label)
    last = f"{MOST}+" if places[-1] == MOST else f"{places[-1]}"
    axes.set_xticks(places, [*map(str, places[:-1]), last])
    axes.grid(False, axis="x")
    greatest = max(float(share.max()) for share in shares.values())
    axes.set(xlabel="labels in a picture", ylabel="share of the pictures")
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0, " %"))
    axes.set_ylim(0, min(1.35 * greatest, 1.3))
    axes.legend(loc="upper right", frameon=False, labelcolor=TEXT, fontsize=9)
    return drawn(figure, left=0.14, bottom=0.14, top=0.97)
