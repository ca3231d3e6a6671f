"""Measure the sensitivity of the calibration error to the number of bins."""

from collections.abc import Callable, Mapping

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.markup import Markup, markup_element, markup_header_cells, markup_table_region
from surelabel.metrics import ReliabilityBins, reliability_bins
from surelabel.report.metric_descriptions import describe_metric, format_described_metric_value
from surelabel.report.reliability_diagram import BINS

FEWER_BINS = 10  # number of bins in many papers
MIN_COUNT = 20  # decisions; the fraction of positives in a smaller bin is mostly noise
CALIBRATION_ERRORS: dict[str, Callable[[ReliabilityBins], float]] = {
    "ece": lambda bins: _bin_sensitivity_mean_gap(bins.gaps, bins.counts),
    "ace": lambda bins: _bin_sensitivity_mean_gap(bins.gaps, np.ones_like(bins.counts)),
    "mce": lambda bins: float(bins.gaps.max()) if bins.gaps.size else np.nan,
}


def calibration_errors_for_bin_sensitivity(
    probabilities: Array, targets: Array, known: Flags
) -> dict[str, dict[str, float]]:
    """Compute ECE, ACE and MCE with different numbers of bins.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Returns:
        Mapping from metric to a mapping from binning, such as ``15 bins``, to metric value. If no
        bin contains enough decisions, the value is NaN.
    """
    decisions = probabilities, targets, known
    binnings = {
        f"{BINS} bins": _bins_for_bin_sensitivity(*decisions, bins=BINS, min_count=1),
        f"{FEWER_BINS} bins": _bins_for_bin_sensitivity(*decisions, bins=FEWER_BINS, min_count=1),
        f"{BINS} bins, only those with {MIN_COUNT} decisions or more": _bins_for_bin_sensitivity(
            *decisions, bins=BINS, min_count=MIN_COUNT
        ),
    }
    return {
        metric: {binning: compute(bins) for binning, bins in binnings.items()}
        for metric, compute in CALIBRATION_ERRORS.items()
    }


def bin_sensitivity_table(errors: Mapping[str, Mapping[str, float]]) -> Markup:
    """Return an HTML table of ECE, ACE and MCE for each binning.

    Args:
        errors: Mapping from metric to a mapping from binning, such as ``15 bins``, to metric value.
    """
    binnings = list(next(iter(errors.values())))
    rows = [
        markup_element(
            "tr",
            markup_element("th", describe_metric(metric).title, scope="row"),
            *(
                markup_element("td", format_described_metric_value(value, "points"))
                for value in values.values()
            ),
        )
        for metric, values in errors.items()
    ]
    return markup_table_region(
        "Sensitivity to the binning", markup_header_cells(["in points", *binnings]), rows
    )


def _bins_for_bin_sensitivity(
    probabilities: Array, targets: Array, known: Flags, *, bins: int, min_count: int
) -> ReliabilityBins:
    every_bin = reliability_bins(probabilities, targets, known, bins=bins)
    selected = every_bin.counts >= min_count
    return ReliabilityBins(
        every_bin.counts[selected], every_bin.confidence[selected], every_bin.accuracy[selected]
    )


def _bin_sensitivity_mean_gap(gaps: Array, weights: Array) -> float:
    return float(np.average(gaps, weights=weights)) if gaps.size else float("nan")
