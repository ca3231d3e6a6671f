"""HTML page of a report: one file without scripts or external resources."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surelabel.evaluation import Evaluation
from surelabel.report.baseline_comparison import (
    predictions_by_source,
    ranking_metrics_by_source,
    threshold_labels_by_source,
)
from surelabel.report.bin_sensitivity import bin_sensitivity_table, calibration_errors_by_binning
from surelabel.report.calibration_effect import calibration_effect_table
from surelabel.report.image_gallery import (
    QueryHits,
    render_examples,
    render_outcome_legend,
    render_search_hits,
)
from surelabel.report.label_table import compute_label_statistics, render_label_table
from surelabel.report.markup import Markup, html_element
from surelabel.report.overview import (
    MetricColumns,
    render_dataset_summary,
    render_headline_metrics,
    render_metric_conventions,
    render_metric_table,
    render_skipped_images,
    render_undefined_labels,
)
from surelabel.report.plot_style import Plot
from surelabel.report.search_results import (
    RetrievalResults,
    query_length_table,
    render_query_examples,
)
from surelabel.report.thumbnails import data_uri
from surelabel.report.unseen_classes import (
    UnseenClasses,
    describe_unseen_classes,
    render_ranking_table,
    render_seen_unseen_table,
)
from surelabel.report.zero_shot_baseline import (
    baseline_comparison_table,
    describe_zero_shot_baseline,
)

CONTENT_SECURITY_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
HEAT_MAP_NOTE = (
    "Below each image: heat maps of the labels with the highest scores. The colours of each map "
    "run from its lowest to its highest value, so maps of different images cannot be compared. "
    "The map of a negative label has a highest value too. If the method computes its own maps, "
    "these come first, followed by the similarity of each region to the label in the frozen "
    "encoder; otherwise the heat map is this similarity. In the map of all labels, a region is "
    "grey if its strongest label is not listed. The maps show the part of the image that the "
    "encoder processed."
)
BINNING_NOTE = (
    "The calibration error depends on the number of bins. If a metric changes much with the bins, "
    "or without the bins that contain few decisions, it is not a reliable estimate."
)
SEARCH_NOTE = (
    "Below each image: the probability that it matches the whole query, with labels taken as "
    "independent, and the probability of each label. ! marks an unwanted label."
)


@dataclass(frozen=True)
class SectionPlots:
    """Plots of the sections of a report.

    Attributes:
        calibration: Plots of probabilities, pooled over labels.
        unseen: Plots of seen and unseen classes.
        label_counts: Plots of labels per image and of co-occurrence.
        per_label: Plots of single labels; the first is shown beside the table of labels.
        retrieval: Plots of retrieval metrics.
    """

    calibration: Sequence[Plot] = ()
    unseen: Sequence[Plot] = ()
    label_counts: Sequence[Plot] = ()
    per_label: Sequence[Plot] = ()
    retrieval: Sequence[Plot] = ()

    def all_plots(self) -> list[Plot]:
        """Return all plots in the order of the page."""
        return [
            *self.calibration,
            *self.unseen,
            *self.label_counts,
            *self.per_label,
            *self.retrieval,
        ]


def render_html_page(
    evaluation: Evaluation,
    plots: SectionPlots,
    *,
    before: Evaluation | None = None,
    searches: Sequence[QueryHits] = (),
    retrieval: RetrievalResults | None = None,
    unseen: UnseenClasses | None = None,
) -> str:
    """Render the HTML page of a report.

    Args:
        evaluation: Evaluation to show.
        plots: Plots of each section.
        before: Evaluation of the same images to compare with, such as before fitting.
        searches: Queries to an index with their hits.
        retrieval: Retrieval metrics by query length.
        unseen: Unseen classes and their metrics.

    Returns:
        Content of the HTML file.
    """
    predictions = evaluation.predictions
    header = render_dataset_summary(
        evaluation.targets,
        evaluation.known,
        calibration=predictions.calibration,
        model=predictions.model,
    )
    sections = {
        ("summary", "Summary"): _summary_section(evaluation, before),
        ("calibration", "Calibration"): _calibration_section(evaluation, plots.calibration),
        ("unseen", "Unseen classes"): _unseen_section(unseen, plots.unseen),
        ("label-counts", "Labels per image"): _label_count_section(evaluation, plots.label_counts),
        ("labels", "Accuracy by label"): _label_section(evaluation, plots.per_label),
        ("images", "Images"): _example_section(evaluation),
        ("queries", "Queries"): _retrieval_section(retrieval, plots.retrieval),
        ("searches", "Searches"): _search_section(searches),
    }
    links = [
        html_element("a", title, href=f"#{anchor}")
        for (anchor, title), section in sections.items()
        if section
    ]
    body = html_element(
        "body",
        html_element(
            "header",
            html_element("h1", "Evaluation report"),
            header,
            html_element("nav", *links, aria_label="Sections"),
        ),
        html_element("main", *sections.values()),
        html_element("footer", "Written by Surelabel. This file has no external resources."),
    )
    return "<!doctype html>\n" + html_element("html", _html_head(), body, lang="en") + "\n"


def _html_head() -> Markup:
    style_sheet = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return html_element(
        "head",
        html_element("meta", charset="utf-8"),
        html_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html_element("meta", http_equiv="Content-Security-Policy", content=CONTENT_SECURITY_POLICY),
        html_element("meta", name="generator", content="Surelabel"),
        html_element("title", "Evaluation report"),
        html_element("style", Markup(style_sheet)),
    )


def _page_section(anchor: str, title: str, *children: str) -> Markup:
    return html_element("section", html_element("h2", title), *children, id=anchor)


def _summary_section(evaluation: Evaluation, before: Evaluation | None) -> Markup:
    predictions = evaluation.predictions
    is_calibrated = predictions.calibration is not None
    columns = MetricColumns(
        summary=evaluation.summary,
        class_means=evaluation.class_means,
        noise_floor=evaluation.noise_floor,
        class_noise_floor=evaluation.class_noise_floor,
        intervals=evaluation.intervals,
        before=None if before is None else before.summary,
    )
    return _page_section(
        "summary",
        "Accuracy and calibration",
        render_headline_metrics(
            evaluation.summary,
            evaluation.noise_floor,
            evaluation.targets,
            evaluation.known,
            predictions.probabilities if is_calibrated else None,
        ),
        render_skipped_images(predictions.skipped),
        render_metric_table(columns),
        render_metric_conventions(is_calibrated=is_calibrated),
        render_undefined_labels(evaluation.undefined_classes, len(predictions.names)),
    )


def _calibration_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    if not plots:
        return Markup("")
    effect = []
    if evaluation.uncalibrated is not None:
        table = calibration_effect_table(evaluation.summary, evaluation.uncalibrated.summary)
        effect = [html_element("h3", "Metrics without and with the calibrator"), table]
    errors = calibration_errors_by_binning(
        evaluation.predictions.probabilities, evaluation.targets, evaluation.known
    )
    return _page_section(
        "calibration",
        "Calibration",
        _plot_grid(plots),
        *effect,
        html_element("h3", "Sensitivity of the calibration error to the bins"),
        html_element("p", BINNING_NOTE, class_="soft"),
        bin_sensitivity_table(errors),
    )


def _unseen_section(unseen: UnseenClasses | None, plots: Sequence[Plot]) -> Markup:
    if unseen is None:
        return Markup("")
    table = render_seen_unseen_table(unseen.results)
    return _page_section(
        "unseen",
        "Unseen classes",
        html_element("p", describe_unseen_classes(unseen), class_="soft"),
        render_ranking_table(unseen.results),
        html_element("h3", "Calibration of seen and unseen classes"),
        html_element("div", *map(_plot_card, plots), table, class_="beside"),
    )


def _label_count_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    if evaluation.zero_shot_baseline is None and not plots:
        return Markup("")
    targets, known = evaluation.targets, evaluation.known
    sources = predictions_by_source(evaluation.predictions, evaluation.zero_shot_baseline)
    table = baseline_comparison_table(
        sources,
        ranking_metrics_by_source(sources, targets, known),
        threshold_labels_by_source(sources, targets, known),
    )
    return _page_section(
        "label-counts",
        "Labels per image and co-occurrence" if plots else "Zero-shot baseline",
        describe_zero_shot_baseline(sources),
        table,
        *([_plot_grid(plots)] if plots else []),
    )


def _label_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    predictions = evaluation.predictions
    labels = compute_label_statistics(
        predictions.names,
        evaluation.targets,
        evaluation.known,
        None if predictions.calibration is None else predictions.probabilities,
        evaluation.per_class,
    )
    note = html_element(
        "p", "The table is sorted by average precision, lowest first.", class_="soft"
    )
    table = render_label_table(labels)
    beside = html_element("div", *map(_plot_card, plots[:1]), table, class_="beside")
    grid = [_plot_grid(plots[1:])] if plots[1:] else []
    return _page_section("labels", "Accuracy and calibration of each label", note, beside, *grid)


def _example_section(evaluation: Evaluation) -> Markup:
    worst, best = evaluation.worst_examples, evaluation.best_examples
    if not best and not worst:
        return Markup("")
    predictions = evaluation.predictions
    is_calibrated = predictions.calibration is not None
    scores = predictions.probabilities if is_calibrated else predictions.scores
    scores_by_path = dict(zip(predictions.paths, scores, strict=True))
    children = [render_outcome_legend(is_calibrated=is_calibrated)]
    if any(example.heat_maps for example in (*worst, *best)):
        children.append(_heat_map_note())
    for title, examples in (
        ("Highest loss", worst),
        ("Lowest loss, among images with two or more positive labels", best),
    ):
        if examples:
            cards = render_examples(
                examples, predictions.names, scores_by_path, is_calibrated=is_calibrated
            )
            children += [html_element("h3", title), cards]
    return _page_section("images", "Images with the highest and lowest loss", *children)


def _heat_map_note() -> Markup:
    colours = html_element(
        "span", "", class_="scale", role="img", aria_label="from purple to yellow"
    )
    scale = html_element("span", "Low ", colours, " high", class_="nowrap")
    return html_element("p", HEAT_MAP_NOTE, " ", scale, class_="soft")


def _retrieval_section(retrieval: RetrievalResults | None, plots: Sequence[Plot]) -> Markup:
    if retrieval is None:
        return Markup("")
    table = query_length_table(retrieval)
    beside = html_element("div", *map(_plot_card, plots), table, class_="beside")
    examples = render_query_examples(retrieval.examples)
    return _page_section("queries", "Retrieval with queries of several labels", beside, examples)


def _search_section(searches: Sequence[QueryHits]) -> Markup:
    if not searches:
        return Markup("")
    note = html_element("p", SEARCH_NOTE, class_="soft")
    return _page_section("searches", "Searches", note, render_search_hits(searches))


def _plot_grid(plots: Sequence[Plot]) -> Markup:
    return html_element("div", *map(_plot_card, plots), class_="plots")


def _plot_card(plot: Plot) -> Markup:
    return html_element(
        "figure",
        html_element("strong", plot.title),
        html_element("img", src=data_uri(plot.png, "png"), alt=plot.alt),
        html_element("figcaption", plot.caption),
        class_="card",
    )
