"""Render HTML cards with images: examples of an evaluation, and hits of searches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.evaluation import Example, ExampleLabel
from surelabel.markup import Markup, join_markup, markup_element
from surelabel.report.alternative_texts import (
    alternative_text_of_example,
    alternative_text_of_hit,
)
from surelabel.report.image_paths import (
    common_image_folder,
    render_image_folder,
    render_image_path,
)
from surelabel.report.metric_descriptions import (
    format_described_metric_value,
    format_described_probability,
)
from surelabel.report.region_overlay import render_region_overlay_maps
from surelabel.report.thumbnails import MAP_SIDE, load_thumbnail, thumbnail_jpeg_data_uri
from surelabel.retrieval import Hit

HALF = 0.5  # probability threshold of a positive decision
MAX_MISSED_LABELS = 6  # positive labels listed below the labels with the highest scores
MAX_HITS = 10  # images of one search
MAX_HITS_OF_ALL_SEARCHES = 120  # limits the size of the page
HIT_SIDE = 160  # pixels of the longer side of a hit
OUTCOMES = {  # outcome of a decision: symbol and description
    "true-positive": ("✓", "true positive (probability of 50 % or more)"),
    "false-positive": ("✗", "false positive (probability of 50 % or more)"),
    "false-negative": ("○", "false negative (probability below 50 %)"),
    "true-negative": ("·", "true negative (probability below 50 %)"),
    "unknown": ("?", "unknown target"),
}
UNCALIBRATED_OUTCOMES = {
    "true-positive": ("✓", "positive"),
    "true-negative": ("·", "negative"),
    "unknown": ("?", "unknown target"),
}
RELEVANCE = {
    True: ("✓", "true-positive", "matches the query"),
    False: ("✗", "false-positive", "does not match the query"),
}


@dataclass(frozen=True)
class QueryHits:
    """Query to an index with its hits, for a report.

    Attributes:
        query: Query, such as ``fork & apple & !knife``.
        hits: Images found by the query, sorted by probability from highest to lowest.
        is_relevant: True for each hit that matches the query. If targets are unknown, the sequence
            is empty.
        prevalence: Fraction of all images that match the query, which is the expected precision of
            a random ranking. If targets are unknown, the prevalence is None.
    """

    query: str
    hits: Sequence[Hit]
    is_relevant: Sequence[bool] = ()
    prevalence: float | None = None


def render_image_gallery_legend(*, is_calibrated: bool) -> Markup:
    """Return an HTML legend of the symbols beside the labels.

    Args:
        is_calibrated: True if the labels have calibrated probabilities.
    """
    outcomes = OUTCOMES if is_calibrated else UNCALIBRATED_OUTCOMES
    entries = [
        markup_element("span", markup_element("i", symbol), f" {description}", class_=outcome)
        for outcome, (symbol, description) in outcomes.items()
    ]
    return markup_element("div", *entries, class_="legend")


def render_image_gallery_of_examples(
    examples: Sequence[Example],
    names: Sequence[str],
    scores_by_path: Mapping[str, Array],
    *,
    is_calibrated: bool,
) -> Markup:
    """Return HTML cards of images with their labels and heat maps.

    Args:
        examples: Example images with their labels and heat maps.
        names: Labels, length c.
        scores_by_path: Mapping from the path of each example to the probabilities or scores of all
            labels, ``(c,)``.
        is_calibrated: True if the scores are calibrated probabilities.
    """
    columns = {name: column for column, name in enumerate(names)}
    folder = common_image_folder(example.path for example in examples)

    def card(example: Example) -> Markup:
        scores = scores_by_path[example.path]
        missed_labels = [
            ExampleLabel(name, float(scores[columns[name]]), is_positive=True)
            for name in example.missed_labels[:MAX_MISSED_LABELS]
        ]
        return _image_gallery_example_card(example, missed_labels, is_calibrated, folder)

    cards = markup_element("div", *map(card, examples), class_="images")
    return join_markup(render_image_folder(folder), cards)


def _image_gallery_example_card(
    example: Example, missed_labels: Sequence[ExampleLabel], is_calibrated: bool, folder: str
) -> Markup:
    items = [
        _image_gallery_label_item(label, is_calibrated)
        for label in (*example.labels, *missed_labels)
    ]
    n_more = len(example.missed_labels) - MAX_MISSED_LABELS
    if n_more > 0:
        items.append(
            markup_element(
                "li", markup_element("i", ""), f"and {format_count(n_more, 'more positive label')}"
            )
        )
    label_list = markup_element("ul", *items, class_="tags")
    return markup_element(
        "div",
        markup_element(
            "div",
            render_image_gallery_image(
                example.path, alternative_text_of_example(example, is_calibrated=is_calibrated)
            ),
            label_list,
            class_="example",
        ),
        _image_gallery_heat_maps(example, is_calibrated),
        render_image_path(example.path, folder),
        class_="card",
    )


def image_gallery_decision_outcome(label: ExampleLabel, is_calibrated: bool) -> str:
    """Return the outcome of a decision, a key of ``OUTCOMES`` such as ``false-positive``.

    An uncalibrated score has no threshold, so no outcome is a false positive or false negative.

    Args:
        label: Label with its score and target.
        is_calibrated: True if the score is a probability.

    Example:
        >>> label = ExampleLabel("lion", 0.9, is_positive=False)
        >>> image_gallery_decision_outcome(label, is_calibrated=True)
        'false-positive'
    """
    if label.is_positive is None:
        return "unknown"
    if not is_calibrated:
        return "true-positive" if label.is_positive else "true-negative"
    if label.score >= HALF:
        return "true-positive" if label.is_positive else "false-positive"
    return "false-negative" if label.is_positive else "true-negative"


def _image_gallery_label_item(label: ExampleLabel, is_calibrated: bool) -> Markup:
    score = format_described_probability(label.score) if is_calibrated else f"{label.score:.3f}"
    return markup_element(
        "li",
        _image_gallery_outcome_symbol(label, is_calibrated),
        markup_element("span", label.name),
        markup_element("b", score),
        class_=image_gallery_decision_outcome(label, is_calibrated),
        style=f"--share:{100 * label.score:.0f}" if is_calibrated else None,
    )


def _image_gallery_outcome_symbol(label: ExampleLabel, is_calibrated: bool) -> Markup:
    outcome = image_gallery_decision_outcome(label, is_calibrated)
    symbol, description = (OUTCOMES if is_calibrated else UNCALIBRATED_OUTCOMES)[outcome]
    return markup_element(
        "i", symbol, role="img", aria_label=description, title=description, class_=outcome
    )


def _image_gallery_heat_maps(example: Example, is_calibrated: bool) -> Markup:
    image = load_thumbnail(example.path, side=MAP_SIDE)
    if image is None or example.regions is None:
        return Markup("")
    symbols = {
        label.name: (_image_gallery_outcome_symbol(label, is_calibrated), " ")
        for label in example.labels
    }
    return render_region_overlay_maps(image, example.regions, symbols)


def render_image_gallery_image(path: str, alt: str, **size: int) -> Markup:
    """Return a thumbnail as HTML, or a frame with the path if the image cannot be read.

    Args:
        path: Path of the image.
        alt: Alternative text, which describes the image.
        size: Keyword argument ``side``, the maximum length of the longer side in pixels.
    """
    image = load_thumbnail(path, **size)
    if image is None:
        return markup_element("div", f"cannot be read: {path}", class_="unreadable")
    return markup_element(
        "img",
        src=thumbnail_jpeg_data_uri(image),
        alt=alt,
        class_="image",
        loading="lazy",
    )


def render_image_gallery_relevance(is_relevant: bool) -> Markup:
    """Return an HTML paragraph that states whether an image matches a query."""
    symbol, outcome, description = RELEVANCE[is_relevant]
    return markup_element("p", markup_element("i", f"{symbol} "), description, class_=outcome)


def render_image_gallery_of_search_hits(searches: Sequence[QueryHits]) -> Markup:
    """Return HTML cards of the first hits of each query, with the probability of each label.

    A query has at most 10 hits, and fewer if there are more than 12 queries.
    """
    max_hits = max(1, min(MAX_HITS, MAX_HITS_OF_ALL_SEARCHES // max(len(searches), 1)))
    folder = common_image_folder(hit.path for search in searches for hit in search.hits)
    return join_markup(
        render_image_folder(folder),
        *(_render_image_gallery_of_one_search(search, max_hits, folder) for search in searches),
    )


def _render_image_gallery_of_one_search(search: QueryHits, max_hits: int, folder: str) -> Markup:
    title = markup_element("h3", markup_element("code", search.query))
    if not search.hits:
        return join_markup(title, markup_element("p", "No images were found.", class_="soft"))
    relevance: Sequence[bool | None] = search.is_relevant or [None] * len(search.hits)
    cards = [
        _image_gallery_hit_card(hit, is_relevant, folder)
        for hit, is_relevant in zip(search.hits[:max_hits], relevance[:max_hits], strict=True)
    ]
    n_more = len(search.hits) - max_hits
    more = (
        [markup_element("p", f"and {format_count(n_more, 'more hit')}", class_="soft")]
        if n_more > 0
        else []
    )
    gallery = markup_element("div", *cards, class_="images small")
    return join_markup(title, *_image_gallery_precision_line(search), gallery, *more)


def _image_gallery_precision_line(search: QueryHits) -> list[Markup]:
    """Return a paragraph on the precision of the hits, or no element if targets are unknown."""
    if not search.is_relevant or search.prevalence is None:
        return []
    n_hits, n_relevant = len(search.is_relevant), sum(search.is_relevant)
    text = (
        f"{n_relevant:,} of these {n_hits:,} images match the query, so the precision at "
        f"{n_hits:,} is {format_described_metric_value(n_relevant / n_hits, '%')}. Of all images, "
        f"{format_described_metric_value(search.prevalence, '%')} match the query."
    )
    return [markup_element("p", text, class_="soft")]


def _image_gallery_hit_card(hit: Hit, is_relevant: bool | None, folder: str) -> Markup:
    items = [
        markup_element(
            "li",
            markup_element("span", name),
            markup_element("b", format_described_probability(probability)),
            style=f"--share:{100 * probability:.0f}",
        )
        for name, probability in hit.terms.items()
    ]
    probability = markup_element("b", format_described_probability(hit.probability))
    return markup_element(
        "div",
        render_image_gallery_image(hit.path, alternative_text_of_hit(hit), side=HIT_SIDE),
        markup_element("p", probability, " for the whole query"),
        *([] if is_relevant is None else [render_image_gallery_relevance(is_relevant)]),
        markup_element("ul", *items, class_="tags terms"),
        render_image_path(hit.path, folder),
        class_="card",
    )
