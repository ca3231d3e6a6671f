"""Names that nothing was learnt of, beside those that training saw: two tables and a diagram."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.evaluation import Evaluation, OpenVocabulary, Protocol
from surelabel.metrics import Reliability, reliability
from surelabel.report.drawing import Plot
from surelabel.report.markup import Markup, element
from surelabel.report.meanings import in_order, meaning_of, measured, shown
from surelabel.report.reliability import BINS, diagram

LISTED = 40  # names
RANKED = ("", "unseen alone", "at most", "seen and unseen", "at most")
SIDES = ("", "seen", "chance alone", "unseen", "chance alone", "unit")
ABOUT = (
    "Seen names are those that fitting may have had labels of. Unseen names are held against each "
    "other in the {pictures} pictures that show one of them (zero-shot), and against all names in "
    "all pictures (generalised zero-shot). At most: what a perfect ranking would reach, for a "
    "picture may have more labels than places, or fewer."
)
ABOUT_SIDES = (
    "In all pictures. Chance alone: what probabilities that are right would show too, the more the "
    "fewer decisions there are."
)


@dataclass(frozen=True)
class Unseen:
    """Names that the recognizer has not learnt, and how well they are found.

    Attributes:
        names: Those, as the evaluation calls them.
        found: Of ``open_vocabulary``.
    """

    names: Sequence[str]
    found: OpenVocabulary


def check_unseen(evaluation: Evaluation, unseen: Unseen | None) -> None:
    """Refuse names that were not judged, and to call all of them unseen.

    Raises:
        InputError: one has no column, or none is seen.
    """
    if unseen is None:
        return
    names = set(evaluation.predictions.names)
    strange = [name for name in unseen.names if name not in names]
    if strange or not 0 < len(set(unseen.names)) < len(names):
        raise InputError(
            f"unseen.names must be some of the {len(names)} names that were judged, one or more, "
            f"and not all. Got {len(set(unseen.names))}"
            + (f", among them {strange[0]!r}, which was not." if strange else ".")
        )


def reliability_of_sides(evaluation: Evaluation, unseen: Unseen) -> dict[str, Reliability]:
    """Decisions of seen and of unseen names in the same bins; nothing without probabilities."""
    if evaluation.predictions.calibration is None:
        return {}
    p = evaluation.predictions.probabilities
    columns = {"seen": ~_unseen(evaluation, unseen), "unseen": _unseen(evaluation, unseen)}
    return {
        side: reliability(p[:, c], evaluation.targets[:, c], evaluation.known[:, c], bins=BINS)
        for side, c in columns.items()
    }


def _unseen(evaluation: Evaluation, unseen: Unseen) -> npt.NDArray[np.bool_]:
    return np.isin(evaluation.predictions.names, list(unseen.names))


def unseen_plots(evaluation: Evaluation, unseen: Unseen) -> list[Plot]:
    """The reliability of seen names beside that of unseen ones; nothing without probabilities."""
    sides = reliability_of_sides(evaluation, unseen)
    if not sides:
        return []
    errors = unseen.found.sides["ece"]
    told = [f"{side} names: ECE {measured(errors[side], 'points')}" for side in sides]
    counts = [f"{found.counts.sum():,.0f} of {side}" for side, found in sides.items()]
    note = (
        f"{BINS} equal-width bins, probability that the label is present; {' and '.join(counts)} "
        f"names, known decisions of {len(evaluation.targets):,} pictures; band: 95 % of honest "
        "points of unseen names, decisions taken as independent; counts on a logarithmic scale"
    )
    curves = [(f"{side} names", sides[side]) for side in ("unseen", "seen")]
    plot = Plot(
        "reliability_unseen",
        "Are unseen names as honest as seen ones?",
        f"Two reliability diagrams of the same pictures. {'; '.join(told)}.",
        "Dots: names that nothing was learnt of, with the band that chance alone would fill. "
        "Squares: names that training saw.",
        diagram(curves, note),
    )
    return [plot]


def about_unseen(unseen: Unseen) -> str:
    """How the numbers of ``ranking_table`` are to be read."""
    some, more = ", ".join(unseen.names[:LISTED]), len(unseen.names) - LISTED
    listed = f"{some} and {more:,} more" if more > 0 else some
    return f"{ABOUT.format(pictures=f'{unseen.found.zsl.pictures:,}')} Unseen: {listed}."


def ranking_table(found: OpenVocabulary) -> Markup:
    """Precision, recall and F1 at k and mAP, each beside the most there is."""
    return _table("Seen and unseen names", RANKED, ranking_rows(found.zsl, found.gzsl))


def sides_table(found: OpenVocabulary) -> Markup:
    """The metrics of honesty on both sides, each beside what chance alone gives."""
    about = element("p", ABOUT_SIDES, class_="soft")
    return element("div", about, _table("Seen beside unseen names", SIDES, side_rows(found)))


def ranking_rows(*protocols: Protocol) -> list[list[str]]:
    """A line for each number, with two columns a protocol: reached, and the most there is."""
    rows = []
    for k in protocols[0].found.best:
        for what in ("precision", "recall", "f1"):
            pairs = [(p.found.best[k], p.ceiling.best[k]) for p in protocols]
            cells = [shown(getattr(at, what), "%") for pair in pairs for at in pair]
            rows.append([f"{what.capitalize()} at {k}", *cells])
    for title, what in (
        ("mAP", "mean_average_precision"),
        ("mAP, absent names as 0", "mean_average_precision_filled"),
    ):
        both = [(p.found, p.ceiling) for p in protocols]
        rows.append([title, *(shown(getattr(of, what), "%") for pair in both for of in pair)])
    rows.append(["Pictures", *(cell for p in protocols for cell in (f"{p.pictures:,}", ""))])
    rows.append(["Labels a picture", *(c for p in protocols for c in (f"{p.labels:.2f}", ""))])
    rows.append(["Absent names", *(cell for p in protocols for cell in (f"{p.empty:,}", ""))])
    return rows


def side_rows(found: OpenVocabulary) -> list[list[str]]:
    """A line for each metric: seen, by chance, unseen, by chance; and its unit."""
    rows = []
    for metric in in_order(found.sides):
        meaning, chance = meaning_of(metric), found.floor.get(metric, {})
        cells = [
            shown(of.get(side), meaning.unit)
            for side in ("seen", "unseen")
            for of in (found.sides[metric], chance)
        ]
        rows.append([meaning.title, *cells, meaning.unit])
    return rows


def _table(label: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    head = element("thead", element("tr", *(element("th", h, scope="col") for h in heads)))
    body = [
        element("tr", element("th", title, scope="row"), *(element("td", cell) for cell in cells))
        for title, *cells in rows
    ]
    table = element("table", head, element("tbody", *body))
    return element("div", table, class_="wide", role="region", aria_label=label, tabindex="0")
