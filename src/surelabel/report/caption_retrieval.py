"""Render retrieval between images and captions as tables, plots and doubtful queries."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from surelabel.decisions.error_prediction import ErrorPrediction
from surelabel.evaluation import PairDirection, PairEvaluation
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.records.pairs import Pairs
from surelabel.report.caption_retrieval_table import (
    DIRECTION_TITLES,
    ERROR_HEADER,
    QUANTITY_TITLES,
    RETRIEVAL_HEADER,
    caption_retrieval_error_rows,
    caption_retrieval_rows,
    describe_caption_retrieval,
)
from surelabel.report.image_gallery import (
    HIT_SIDE,
    render_image_gallery_image,
    render_image_gallery_relevance,
)
from surelabel.report.image_paths import (
    common_image_folder,
    render_image_folder,
    render_image_path,
)
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_percent_ticks,
)

CAPTION_RETRIEVAL_PLOT_NAMES = ("match_uncertainty", "match_risk_coverage")
N_DOUBTFUL_QUERIES = 3  # queries of each direction
N_ITEMS = 5  # highest-ranked items of each query
LINE_STYLES = {
    "uncertainty": (BLUE, "-"),
    "minus_score": (ORANGE, "--"),
    "minus_margin": (TEXT, ":"),
}
OWN_NOTE = (
    "The own items of an image are its captions; the own item of a caption is its image. In all "
    "tables and plots, a query has an error at rank 1 if its first item is not an own item."
)
RELEVANT_NOTE = (
    "An item is relevant if it is an own item, or if its grade is {threshold:g} or more. A false "
    "negative is a relevant item that is not an own item. A false negative is missed if its rank "
    "is greater than R, the number of relevant items of the query."
)
BIN_NOTE = (
    "Each of the ten bins has the same number of queries. R@1 is the fraction of queries whose "
    "first item is an own item."
)


def caption_retrieval_plots(evaluation: PairEvaluation) -> list[Plot]:
    """Return the plots of the section: R@1 by uncertainty, and the risk-coverage curves.

    The first plot is omitted if there are fewer than ten queries in a direction.
    """
    has_bins = all(
        _first_prediction(direction).bins is not None
        for direction in evaluation.directions.values()
    )
    bins = [plot_recall_by_uncertainty(evaluation)] if has_bins else []
    return [*bins, plot_match_risk_coverage(evaluation)]


def plot_recall_by_uncertainty(evaluation: PairEvaluation) -> Plot:
    """Plot R@1 in ten bins of increasing uncertainty, for both directions.

    If there is no uncertainty, minus the score is used.
    """
    sentences = []
    figure = new_figure_in_plot_style(5.6)
    all_axes = figure.subplots(2, 1, sharex=True)
    for axes, (name, direction) in zip(all_axes, evaluation.directions.items(), strict=True):
        prediction = _first_prediction(direction)
        bins = prediction.bins
        assert bins is not None  # caption_retrieval_plots omits the plot otherwise
        apply_plot_style_to_axes(axes)
        numbers = np.arange(1, len(bins.accuracy) + 1)
        axes.bar(numbers, 100 * bins.accuracy, color=BLUE, width=0.8)
        axes.set(ylim=(0, 108), ylabel=f"R@1, %\n{DIRECTION_TITLES[name]}", xticks=numbers)
        sentences.append(
            f"{DIRECTION_TITLES[name].capitalize()}: R@1 is {100 * bins.accuracy[0]:.1f} % in the "
            f"most certain bin and {100 * bins.accuracy[-1]:.1f} % in the most uncertain bin"
        )
    quantity = QUANTITY_TITLES[_first_quantity(evaluation)].removeprefix("null: ")
    all_axes[-1].set_xlabel(f"bin of increasing {quantity}")
    png = plot_style_figure_to_png(figure, left=0.15, bottom=0.1, top=0.97, note=BIN_NOTE)
    text = ". ".join(sentences)
    return Plot(
        "match_uncertainty",
        "R@1 by uncertainty of the first item",
        f"R@1 in ten bins of increasing {quantity}. {text}.",
        f"{text}. If R@1 decreases from left to right, uncertain first items are wrong more often. "
        "A correlation over ten bins is usually stronger than a correlation over queries. To "
        "compare uncertainty measures, use the AUROC of errors in the table.",
        png,
    )


def plot_match_risk_coverage(evaluation: PairEvaluation) -> Plot:
    """Plot the error rate of the first item against the fraction of queries that are answered."""
    figure = new_figure_in_plot_style(6.4)
    all_axes = figure.subplots(2, 1, sharex=True)
    sentences = []
    for axes, (name, direction) in zip(all_axes, evaluation.directions.items(), strict=True):
        _draw_match_risk_coverage(axes, direction.error_predictions)
        axes.set_ylabel(f"error rate, %\n{DIRECTION_TITLES[name]}")
        prediction = _first_prediction(direction)
        sentences.append(
            f"{DIRECTION_TITLES[name].capitalize()}: the error rate at rank 1 is "
            f"{100 * prediction.risk_at_80:.1f} % without the most uncertain 20 % of the queries, "
            f"and {100 * prediction.risk_coverage.risk[-1]:.1f} % with all queries"
        )
    all_axes[-1].legend(loc="lower right", frameon=False, labelcolor=TEXT, fontsize=8.5)
    all_axes[-1].set_xlabel("coverage: fraction of answered queries, least uncertain first")
    set_plot_style_percent_ticks(all_axes[-1].xaxis)
    text = ". ".join(sentences)
    return Plot(
        "match_risk_coverage",
        "Risk-coverage curves of the error rate at rank 1",
        f"Error rate at rank 1 against the fraction of answered queries. {text}.",
        f"{text}. The uncertainty of the pair predicts errors better than the scores do if its "
        "line is below both null lines (minus score and minus margin).",
        plot_style_figure_to_png(figure, left=0.15, bottom=0.1, top=0.97),
    )


def render_caption_retrieval(evaluation: PairEvaluation) -> Markup:
    """Return the sentences and tables of the section as HTML."""
    lines = [markup_element("p", line) for line in describe_caption_retrieval(evaluation)]
    notes = [OWN_NOTE]
    if evaluation.threshold is not None:
        notes.append(RELEVANT_NOTE.format(threshold=evaluation.threshold))
    note = markup_element("p", " ".join(notes), class_="soft")
    return join_markup(
        *lines,
        note,
        render_caption_retrieval_table(
            "Retrieval metrics", RETRIEVAL_HEADER, caption_retrieval_rows(evaluation)
        ),
        markup_element("h3", "Prediction of errors at rank 1"),
        render_caption_retrieval_table(
            "Error prediction", ERROR_HEADER, caption_retrieval_error_rows(evaluation)
        ),
    )


def render_doubtful_queries(
    evaluation: PairEvaluation, pairs: Pairs, *, n_queries: int = N_DOUBTFUL_QUERIES
) -> Markup:
    """Return the queries with the most uncertain first item, with their first five items, as HTML.

    Args:
        evaluation: Evaluation of ``pairs``.
        pairs: Images and captions of the evaluation.
        n_queries: Maximum number of queries of each direction.
    """
    to_captions = evaluation.directions["image_to_caption"]
    to_images = evaluation.directions["caption_to_image"]
    folder = common_image_folder(pairs.paths)
    image_cards = [
        _image_query_card(to_captions, position, pairs, folder)
        for position in _most_doubtful(to_captions, n_queries)
    ]
    caption_queries = [
        _caption_query(to_images, position, pairs, folder)
        for position in _most_doubtful(to_images, n_queries)
    ]
    return join_markup(
        render_image_folder(folder),
        markup_element("h3", "Most uncertain images"),
        markup_element("div", *image_cards, class_="images"),
        markup_element("h3", "Most uncertain captions"),
        *caption_queries,
    )


def _first_quantity(evaluation: PairEvaluation) -> str:
    return next(iter(evaluation.directions["image_to_caption"].error_predictions))


def _first_prediction(direction: PairDirection) -> ErrorPrediction:
    return next(iter(direction.error_predictions.values()))


def _draw_match_risk_coverage(axes: Axes, predictions: Mapping[str, ErrorPrediction]) -> None:
    apply_plot_style_to_axes(axes)
    for quantity, prediction in predictions.items():
        colour, style = LINE_STYLES[quantity]
        curve = prediction.risk_coverage
        axes.plot(
            curve.coverage,
            100 * curve.risk,
            color=colour,
            linestyle=style,
            lw=1.6,
            label=QUANTITY_TITLES[quantity],
        )
    highest = max(100 * p.risk_coverage.risk.max() for p in predictions.values())
    axes.set(xlim=(0, 1), ylim=(0, max(1.08 * highest, 1e-9)))


def render_caption_retrieval_table(
    label: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> Markup:
    """Return a table of texts as HTML, with the headers of the rows in the first column.

    Args:
        label: Name of the table for screen readers.
        header: Header of each column.
        rows: Texts of each row.
    """
    body = [
        markup_element(
            "tr",
            markup_element("th", row[0], scope="row"),
            *(markup_element("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    return markup_table_region(label, markup_header_cells(header), body)


def _most_doubtful(direction: PairDirection, n_queries: int) -> list[int]:
    """Return the positions of the queries with the most uncertain first item."""
    uncertainty = _first_prediction(direction).uncertainty
    positions: list[int] = np.argsort(-uncertainty, kind="stable")[:n_queries].tolist()
    return positions


def _query_uncertainty_text(direction: PairDirection, position: int) -> str:
    quantity, prediction = next(iter(direction.error_predictions.items()))
    title = QUANTITY_TITLES[quantity].removeprefix("null: ")
    return f"{title} {prediction.uncertainty[position]:.3g}"


def _image_query_card(direction: PairDirection, position: int, pairs: Pairs, folder: str) -> Markup:
    image = direction.queries[position]
    path = pairs.paths[image]
    items = [
        markup_element(
            "li",
            markup_element("i", "✓" if is_relevant else "✗", role="img", aria_label=description),
            markup_element("span", pairs.captions[caption]),
            class_="true-positive" if is_relevant else "false-positive",
        )
        for caption, is_relevant in zip(
            direction.top_items[position][:N_ITEMS],
            direction.is_top_item_relevant[position].tolist(),
            strict=False,
        )
        for description in ["relevant" if is_relevant else "not relevant"]
    ]
    captions = _own_captions(pairs, image)
    own_caption = [markup_element("p", f"Own caption: “{captions[0]}”")] if captions else []
    return markup_element(
        "div",
        render_image_gallery_image(path, _alternative_text(pairs, image), side=HIT_SIDE),
        *own_caption,
        markup_element("p", _query_uncertainty_text(direction, position), class_="soft"),
        markup_element("ul", *items, class_="tags"),
        render_image_path(path, folder),
        class_="card",
    )


def _alternative_text(pairs: Pairs, image: int) -> str:
    """Return the first caption of an image, or its path if the image has no caption."""
    captions = _own_captions(pairs, image)
    return captions[0] if captions else f"image {pairs.paths[image]}"


def _own_captions(pairs: Pairs, image: int) -> list[str]:
    """Return the captions of an image."""
    rows: list[int] = np.flatnonzero(np.asarray(pairs.image_rows) == image).tolist()
    return [pairs.captions[row] for row in rows]


def _caption_query(direction: PairDirection, position: int, pairs: Pairs, folder: str) -> Markup:
    cards = [
        markup_element(
            "div",
            render_image_gallery_image(
                pairs.paths[image], _alternative_text(pairs, image), side=HIT_SIDE
            ),
            render_image_gallery_relevance(is_relevant),
            render_image_path(pairs.paths[image], folder),
            class_="card",
        )
        for image, is_relevant in zip(
            direction.top_items[position][:N_ITEMS],
            direction.is_top_item_relevant[position].tolist(),
            strict=False,
        )
    ]
    return join_markup(
        markup_element("h4", f"Caption: “{pairs.captions[direction.queries[position]]}”"),
        markup_element("p", _query_uncertainty_text(direction, position), class_="soft"),
        markup_element("div", *cards, class_="images small"),
    )
