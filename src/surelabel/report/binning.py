"""Calibration error read with other bins: it must not hang on a choice that nobody made."""

from collections.abc import Callable

import numpy as np

from surelabel.evaluation import Evaluation
from surelabel.metrics import Reliability, reliability
from surelabel.report.markup import Markup, element
from surelabel.report.meanings import meaning_of, shown
from surelabel.report.reliability import BINS

FEWER = 10  # bins, as many papers take
LEAST = 20  # decisions, below which a bin is mostly chance
READINGS: dict[str, Callable[[Reliability], float]] = {
    "ece": lambda found: _mean(found.gaps, found.counts),
    "ace": lambda found: _mean(found.gaps, np.ones_like(found.counts)),
    "mce": lambda found: float(found.gaps.max()) if found.gaps.size else np.nan,
}


def binned(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Metric → way of binning → value; NaN where no bin is left."""
    ways = {
        f"{BINS} bins": _bins(evaluation, BINS, 1),
        f"{FEWER} bins": _bins(evaluation, FEWER, 1),
        f"{BINS} bins, those of {LEAST} decisions or more": _bins(evaluation, BINS, LEAST),
    }
    return {
        metric: {way: read(found) for way, found in ways.items()}
        for metric, read in READINGS.items()
    }


def binning_table(evaluation: Evaluation) -> Markup:
    """ECE, ACE and MCE in each way of binning."""
    found = binned(evaluation)
    ways = list(next(iter(found.values())))
    heads = [element("th", head, scope="col") for head in ("in points", *ways)]
    rows = [
        element(
            "tr",
            element("th", meaning_of(metric).title, scope="row"),
            *(element("td", shown(value, "points")) for value in values.values()),
        )
        for metric, values in found.items()
    ]
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    return element(
        "div", table, class_="wide", role="region", aria_label="Other bins", tabindex="0"
    )


def _bins(evaluation: Evaluation, bins: int, least: int) -> Reliability:
    p = evaluation.predictions.probabilities
    found = reliability(p, evaluation.targets, evaluation.known, bins=bins)
    kept = found.counts >= least
    return Reliability(found.counts[kept], found.confidence[kept], found.accuracy[kept])


def _mean(gaps: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average(gaps, weights=weights)) if gaps.size else float("nan")
