"""The part of a report that goes label by label."""

import numpy as np

from surelabel.evaluation import Evaluation
from surelabel.records import Array
from surelabel.report.markup import Markup, element
from surelabel.report.meanings import shown

COLUMNS = (
    ("label", "Its name."),
    ("pictures", "How many pictures have it."),
    ("share", "Of all pictures; what the average precision of guessing is."),
    ("average precision", "How well pictures are sorted by this label."),
    ("Brier skill", "Below 0 % the prevalence alone would do better."),
    ("ECE", "Points; with few pictures it is mostly chance."),
    ("mean probability", "Honest probabilities have the mean of the prevalence."),
)


def positives(evaluation: Evaluation) -> Array:
    """How many pictures are known to have each label, ``(c,)``."""
    count: Array = (evaluation.targets * evaluation.known).sum(axis=0)
    return count


def prevalence(evaluation: Evaluation) -> Array:
    """Share of the known pictures that have each label, NaN where none is known, ``(c,)``."""
    return _mean(evaluation.targets, evaluation)


def mean_probability(evaluation: Evaluation) -> Array:
    """Mean probability where the truth is known, NaN without probabilities, ``(c,)``."""
    if evaluation.predictions.calibration is None:
        return np.full(len(evaluation.predictions.names), np.nan)
    return _mean(evaluation.predictions.probabilities, evaluation)


def _mean(values: Array, evaluation: Evaluation) -> Array:
    known = evaluation.known.sum(axis=0)
    total = np.where(evaluation.known, values, 0.0).sum(axis=0)
    mean: Array = np.divide(total, known, out=np.full(len(known), np.nan), where=known > 0)
    return mean


def of_each_label(evaluation: Evaluation, metric: str) -> Array:
    """One metric of each label, NaN where it was not judged, ``(c,)``."""
    nothing = np.full(len(evaluation.predictions.names), np.nan)
    return evaluation.per_class.get(metric, nothing)


def label_table(evaluation: Evaluation) -> Markup:
    """All labels, the worst ranked first, those without a judgement last."""
    precision = of_each_label(evaluation, "average_precision")
    counted = zip(
        evaluation.predictions.names,
        positives(evaluation),
        prevalence(evaluation),
        precision,
        of_each_label(evaluation, "brier_skill"),
        of_each_label(evaluation, "ece"),
        mean_probability(evaluation),
        strict=True,
    )
    rows = [_row(*numbers) for numbers in counted]
    heads = [element("th", name, title=about, scope="col") for name, about in COLUMNS]
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *heads)),
            element("tbody", *(rows[c] for c in np.argsort(precision, kind="stable"))),
        ),
        class_="scroll",
        role="region",
        aria_label="Labels",
        tabindex="0",
    )


def _row(
    name: str, count: float, share: float, precision: float, skill: float, ece: float, mean: float
) -> Markup:
    bar = None if np.isnan(precision) else f"--share:{100 * precision:.0f}"
    return element(
        "tr",
        element("th", name, scope="row", class_="name"),
        element("td", f"{count:,.0f}"),
        element("td", shown(share, "%")),
        element("td", shown(precision, "%"), class_="bar" if bar else None, style=bar),
        element("td", shown(skill, "%")),
        element("td", shown(ece, "points")),
        element("td", shown(mean, "%")),
    )
