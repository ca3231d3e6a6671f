"""The parts of a report that show pictures: the best, the worst, and what was searched for."""

from collections.abc import Sequence
from dataclasses import dataclass

from surelabel.evaluation import Evaluation, Example, Tag
from surelabel.report.markup import Markup, element, joined
from surelabel.report.meanings import chance, shown
from surelabel.report.pictures import MAP_SIDE, jpeg, thumbnail
from surelabel.report.regions import by_region
from surelabel.retrieval import Hit

HALF = 0.5  # the probability from which a label counts as claimed
MISSED = 6  # labels named that are there and not among the likeliest
HITS = 10  # pictures shown of a search
ALL_HITS = 120  # pictures shown of all searches together, so that the page stays small
HIT_SIDE = 160
SIGNS = {
    "right": ("✓", "claimed, and there"),
    "wrong": ("✗", "claimed, and not there"),
    "missed": ("○", "there, and not claimed"),
    "low": ("·", "rightly not claimed"),
    "unknown": ("?", "nobody said whether it is there"),
}
SCORE_SIGNS = {
    "right": ("✓", "there"),
    "low": ("·", "not there"),
    "unknown": ("?", "nobody said whether it is there"),
}
TRUTH = {True: ("✓", "right", "all of it holds"), False: ("✗", "wrong", "not all of it holds")}


@dataclass(frozen=True)
class Search:
    """A question to an index, and its answer.

    Attributes:
        query: As it was asked, such as ``fork & apple & !knife``.
        hits: What was found, the best first.
        right: Whether the question is true of each of them; empty where nobody knows.
        prevalence: Share of all pictures of which it is, which as many drawn blindly would reach.
    """

    query: str
    hits: Sequence[Hit]
    right: Sequence[bool] = ()
    prevalence: float | None = None


def legend(evaluation: Evaluation) -> Markup:
    """What the signs beside the labels mean."""
    signs = SIGNS if evaluation.predictions.calibration is not None else SCORE_SIGNS
    meant = [
        element("span", element("i", sign), f" {about}", class_=kind)
        for kind, (sign, about) in signs.items()
    ]
    return element("div", *meant, class_="legend")


def examples(evaluation: Evaluation, chosen: Sequence[Example]) -> Markup:
    """Pictures with their labels, and where in them the likeliest are seen."""
    predictions = evaluation.predictions
    calibrated = predictions.calibration is not None
    values = predictions.probabilities if calibrated else predictions.scores
    row = dict(zip(predictions.paths, values, strict=True))
    column = {name: c for c, name in enumerate(predictions.names)}

    def card(example: Example) -> Markup:
        missed = example.missed[:MISSED]
        also = [Tag(m, float(row[example.path][column[m]]), present=True) for m in missed]
        return _example(example, also, calibrated)

    return element("div", *map(card, chosen), class_="pictures")


def _example(example: Example, also: Sequence[Tag], calibrated: bool) -> Markup:
    tags = [_tag(tag, calibrated) for tag in (*example.tags, *also)]
    more = len(example.missed) - MISSED
    tags += [element("li", element("i", ""), f"and {more} more that are there")] if more > 0 else []
    return element(
        "div",
        element("div", picture(example.path), element("ul", *tags, class_="tags"), class_="seen"),
        _where(example, calibrated),
        element("div", example.path, class_="path"),
        class_="card",
    )


def kind_of(tag: Tag, calibrated: bool) -> str:
    """Which of ``SIGNS`` a label deserves; a score claims nothing, so it cannot be wrong.

    Example:
        >>> kind_of(Tag("lion", 0.9, present=False), calibrated=True)
        'wrong'
    """
    if tag.present is None:
        return "unknown"
    if not calibrated:
        return "right" if tag.present else "low"
    if tag.value >= HALF:
        return "right" if tag.present else "wrong"
    return "missed" if tag.present else "low"


def _tag(tag: Tag, calibrated: bool) -> Markup:
    kind = kind_of(tag, calibrated)
    return element(
        "li",
        _sign(tag, calibrated),
        element("span", tag.name),
        element("b", chance(tag.value) if calibrated else f"{tag.value:.3f}"),
        class_=kind,
        style=f"--share:{100 * tag.value:.0f}" if calibrated else None,
    )


def _sign(tag: Tag, calibrated: bool) -> Markup:
    kind = kind_of(tag, calibrated)
    sign, about = (SIGNS if calibrated else SCORE_SIGNS)[kind]
    return element("i", sign, role="img", aria_label=about, title=about, class_=kind)


def _where(example: Example, calibrated: bool) -> Markup:
    seen = thumbnail(example.path, side=MAP_SIDE)
    if seen is None or example.regions is None:
        return Markup("")
    signs = {tag.name: (_sign(tag, calibrated), " ") for tag in example.tags}
    return by_region(seen, example.path, example.regions, signs)


def picture(path: str, **size: int) -> Markup:
    """A thumbnail, or a frame with the path where the file is gone or damaged."""
    found = thumbnail(path, **size)
    if found is None:
        return element("div", f"cannot be read: {path}", class_="gone")
    return _image(jpeg(found), f"picture {path}")


def _image(address: str, alt: str) -> Markup:
    return element("img", src=address, alt=alt, class_="picture", loading="lazy")


def told(right: bool) -> Markup:
    """Whether a question is true of the picture above."""
    sign, kind, about = TRUTH[right]
    return element("p", element("i", f"{sign} "), about, class_=kind)


def searched(searches: Sequence[Search]) -> Markup:
    """Each search with its best pictures and the probability of each of its labels."""
    most = max(1, min(HITS, ALL_HITS // max(len(searches), 1)))
    return joined(*(_search(search, most) for search in searches))


def _search(search: Search, most: int) -> Markup:
    title = element("h3", element("code", search.query))
    if not search.hits:
        return joined(title, element("p", "Nothing was found.", class_="soft"))
    right: Sequence[bool | None] = search.right or [None] * len(search.hits)
    cards = [_hit(h, r) for h, r in zip(search.hits[:most], right[:most], strict=True)]
    rest = len(search.hits) - most
    more = [element("p", f"{rest:,} more were found.", class_="soft")] if rest > 0 else []
    return joined(title, *_truth(search), element("div", *cards, class_="pictures small"), *more)


def _truth(search: Search) -> list[Markup]:
    """Precision of the hits beside prevalence, where the truth is known."""
    if not search.right or search.prevalence is None:
        return []
    count = len(search.right)
    about = (
        f"True of {sum(search.right):,} of these {count:,}: precision at {count:,} is "
        f"{shown(sum(search.right) / count, '%')}. It is true of "
        f"{shown(search.prevalence, '%')} of all pictures."
    )
    return [element("p", about, class_="soft")]


def _hit(hit: Hit, right: bool | None) -> Markup:
    terms = [
        element(
            "li",
            element("span", name),
            element("b", chance(probability)),
            style=f"--share:{100 * probability:.0f}",
        )
        for name, probability in hit.terms.items()
    ]
    return element(
        "div",
        picture(hit.path, side=HIT_SIDE),
        element("p", element("b", chance(hit.probability)), " that all terms hold"),
        *([] if right is None else [told(right)]),
        element("ul", *terms, class_="tags terms"),
        element("div", hit.path, class_="path"),
        class_="card",
    )
