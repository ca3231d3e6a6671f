"""Which plots an evaluation gets, and what is said of each."""

from dataclasses import dataclass

import numpy as np

from surelabel.evaluation import Evaluation
from surelabel.metrics import Reliability, reliability
from surelabel.report.labels import of_each_label, prevalence
from surelabel.report.plots import confidence_plot, per_class_plot, reliability_plot

BINS = 15


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        name: Of its file, without suffix.
        title: Above it.
        alt: What it shows, for those who cannot see it.
        caption: How to read it.
        png: The file.
    """

    name: str
    title: str
    alt: str
    caption: str
    png: bytes


def honesty_plots(evaluation: Evaluation, before: Evaluation | None) -> list[Plot]:
    """Reliability, that before where there was one, and the histogram of probabilities."""
    if evaluation.predictions.calibration is None:
        return []
    plots = [_reliability(evaluation, "reliability", "Do probabilities keep their promise?")]
    if before is not None and before.predictions.calibration is not None:
        plots.insert(0, _reliability(before, "reliability_before", "Before"))
        plots[1] = _reliability(evaluation, "reliability", "After")
    return [*plots, _confidence(evaluation)]


def label_plots(evaluation: Evaluation) -> list[Plot]:
    """Average precision label by label, where any label has one."""
    names, precision = evaluation.predictions.names, of_each_label(evaluation, "average_precision")
    if np.isnan(precision).all():
        return []
    share = prevalence(evaluation)
    best, worst = names[int(np.nanargmax(precision))], names[int(np.nanargmin(precision))]
    alt = (
        f"Bars of average precision, the best label first: {best} with "
        f"{100 * np.nanmax(precision):.0f} %, the last is {worst} with "
        f"{100 * np.nanmin(precision):.0f} %."
    )
    return [
        Plot(
            "per_class",
            "Which labels are found well",
            alt,
            "Each bar is one label. The orange mark is what guessing would reach: the share of "
            "pictures that have the label.",
            per_class_plot(names, precision, share),
        )
    ]


def reliability_of(evaluation: Evaluation) -> Reliability:
    """All known decisions in ``BINS`` bins."""
    probabilities = evaluation.predictions.probabilities
    return reliability(probabilities, evaluation.targets, evaluation.known, bins=BINS)


def _reliability(evaluation: Evaluation, name: str, title: str) -> Plot:
    found = reliability_of(evaluation)
    used = found.counts > 0
    points = [
        f"{100 * claimed:.0f} % claimed, {100 * true:.0f} % true"
        for claimed, true in zip(found.confidence[used], found.accuracy[used], strict=True)
    ]
    return Plot(
        name,
        title,
        f"Reliability diagram. {'; '.join(points)}.",
        "On the dashed line, labels given 30 % are there 30 times of 100. Below it the recognizer "
        "claims too much, above it too little. Points inside the band could be chance alone.",
        reliability_plot(found),
    )


def _confidence(evaluation: Evaluation) -> Plot:
    probabilities, known = evaluation.predictions.probabilities, evaluation.known
    there = evaluation.targets >= 0.5
    present, absent = probabilities[known & there], probabilities[known & ~there]
    return Plot(
        "confidence",
        "How sure it is",
        f"Two histograms: {len(present):,} probabilities of labels that are there, {len(absent):,} "
        f"of labels that are not; counts on a logarithmic scale.",
        "The better a recognizer, the further right the blue bars and the further left the orange "
        "ones. Each line up means ten times as many.",
        confidence_plot(present, absent),
    )
