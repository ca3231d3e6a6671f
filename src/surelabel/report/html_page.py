"""Render the HTML page of a report as one file without scripts or external resources."""

from collections.abc import Sequence
from dataclasses import dataclass

from surelabel.evaluation import Evaluation
from surelabel.markup import Markup, markup_element
from surelabel.report.baseline_comparison import (
    baseline_comparison_ranking_metrics,
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)
from surelabel.report.bin_sensitivity import (
    bin_sensitivity_table,
    calibration_errors_for_bin_sensitivity,
)
from surelabel.report.calibration_effect import calibration_effect_table
from surelabel.report.decision_section import decision_section_title, render_decision_section
from surelabel.report.image_gallery import (
    QueryHits,
    render_image_gallery_legend,
    render_image_gallery_of_examples,
    render_image_gallery_of_search_hits,
)
from surelabel.report.label_table import compute_label_table_statistics, render_label_table
from surelabel.report.label_uncertainty import KIND_TITLES, render_label_uncertainty_tables
from surelabel.report.overview import (
    MetricColumns,
    render_dataset_overview,
    render_overview_headline_metrics,
    render_overview_metric_conventions,
    render_overview_metric_table,
    render_overview_skipped_images,
    render_overview_undefined_labels,
)
from surelabel.report.page_layout import (
    render_page_layout,
    render_page_plot_card,
    render_page_plot_grid,
    render_page_section,
)
from surelabel.report.plot_style import Plot
from surelabel.report.search_results import (
    RetrievalResults,
    render_search_results_examples,
    search_results_table,
)
from surelabel.report.unseen_classes import (
    UnseenClasses,
    describe_unseen_classes_in_report,
    render_unseen_classes_metric_table,
    render_unseen_classes_ranking_table,
)
from surelabel.report.zero_shot_baseline import (
    describe_zero_shot_baseline_in_report,
    zero_shot_baseline_report_table,
)

HEAT_MAP_NOTE = (
    "The heat maps below each image show the labels with the highest scores. In each map, purple "
    "is the lowest value and yellow is the highest value. Therefore, the colours of different maps "
    "cannot be compared, and even the map of a negative label has a yellow region. The first row "
    "shows the heat maps of the method. A later row shows the similarity of each region to the "
    "label in the frozen encoder. If the method has no heat maps, the first row shows this "
    "similarity. In the map of all labels, a region is grey if its highest-scored label is not "
    "listed. The maps cover the part of the image that the encoder processed."
)
BINNING_NOTE = (
    "The calibration error depends on the number of bins. A metric is not a reliable estimate if "
    "its value changes much with another number of bins, or without bins that contain few "
    "decisions."
)
SEARCH_NOTE = (
    "Each card shows the probability that the image matches the whole query, and the probability "
    "of each label. The probability of the whole query is computed under the assumption that "
    "labels are independent. In a query, ! marks an unwanted label."
)


@dataclass(frozen=True)
class HtmlPagePlots:
    """Plots of the sections of a report.

    Attributes:
        decisions: Precision-recall curves.
        calibration: Plots of probabilities, pooled over labels.
        uncertainty: Plots of errors against uncertainty.
        unseen: Plots of seen and unseen classes.
        label_counts: Plots of labels per image and of co-occurrence.
        per_label: Plots of metrics by label; the first plot is beside the table of labels.
        retrieval: Plots of retrieval metrics.
    """

    decisions: Sequence[Plot] = ()
    calibration: Sequence[Plot] = ()
    uncertainty: Sequence[Plot] = ()
    unseen: Sequence[Plot] = ()
    label_counts: Sequence[Plot] = ()
    per_label: Sequence[Plot] = ()
    retrieval: Sequence[Plot] = ()

    def all_plots(self) -> list[Plot]:
        """Return all plots in the order of the page."""
        return [
            *self.decisions,
            *self.calibration,
            *self.uncertainty,
            *self.unseen,
            *self.label_counts,
            *self.per_label,
            *self.retrieval,
        ]


def render_html_page(
    evaluation: Evaluation,
    plots: HtmlPagePlots,
    *,
    before: Evaluation | None = None,
    searches: Sequence[QueryHits] = (),
    retrieval: RetrievalResults | None = None,
    unseen: UnseenClasses | None = None,
) -> str:
    """Render the HTML page of a report.

    Args:
        evaluation: Evaluation to report.
        plots: Plots of each section.
        before: Earlier evaluation of the same images for comparison, such as before fitting.
        searches: Queries to an index with their hits.
        retrieval: Retrieval metrics by query length.
        unseen: Unseen classes and their metrics.

    Returns:
        Content of the HTML file.
    """
    predictions = evaluation.predictions
    header = render_dataset_overview(
        evaluation.targets,
        evaluation.known,
        calibration=predictions.calibration,
        model=predictions.model,
        noun=predictions.row_noun,
    )
    sections = {
        ("summary", "Summary"): _html_page_summary_section(evaluation, before),
        ("decisions", decision_section_title(evaluation)): render_decision_section(
            evaluation, plots.decisions
        ),
        ("calibration", "Calibration"): _html_page_calibration_section(
            evaluation, plots.calibration
        ),
        ("uncertainty", "Uncertainty"): _html_page_uncertainty_section(
            evaluation, plots.uncertainty
        ),
        ("unseen", "Unseen classes"): _html_page_unseen_section(unseen, plots.unseen),
        ("label-counts", "Labels per image"): _html_page_label_count_section(
            evaluation, plots.label_counts
        ),
        ("labels", "Accuracy by label"): _html_page_label_section(evaluation, plots.per_label),
        ("images", "Images"): _html_page_example_section(evaluation),
        ("queries", "Queries"): _html_page_retrieval_section(retrieval, plots.retrieval),
        ("searches", "Searches"): _html_page_search_section(searches),
    }
    return render_page_layout("Evaluation report", header, sections)


def _html_page_summary_section(evaluation: Evaluation, before: Evaluation | None) -> Markup:
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
    return render_page_section(
        "summary",
        "Accuracy and calibration",
        render_overview_headline_metrics(
            evaluation.summary,
            evaluation.noise_floor,
            evaluation.targets,
            evaluation.known,
            predictions.probabilities if is_calibrated else None,
        ),
        render_overview_skipped_images(predictions.skipped),
        render_overview_metric_table(columns),
        render_overview_metric_conventions(is_calibrated=is_calibrated),
        render_overview_undefined_labels(evaluation.undefined_classes, len(predictions.names)),
    )


def _html_page_calibration_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    if not plots:
        return Markup("")
    effect = []
    if evaluation.uncalibrated is not None:
        table = calibration_effect_table(evaluation.summary, evaluation.uncalibrated.summary)
        effect = [markup_element("h3", "Metrics without and with the calibrator"), table]
    errors = calibration_errors_for_bin_sensitivity(
        evaluation.predictions.probabilities, evaluation.targets, evaluation.known
    )
    return render_page_section(
        "calibration",
        "Calibration",
        render_page_plot_grid(plots),
        *effect,
        markup_element("h3", "Sensitivity of the calibration error to the binning"),
        markup_element("p", BINNING_NOTE, class_="soft"),
        bin_sensitivity_table(errors),
    )


def _html_page_uncertainty_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    if evaluation.uncertainty is None:
        return Markup("")
    predictions, examples = evaluation.predictions, evaluation.uncertainty.doubtful_examples
    doubtful = []
    if examples:
        probabilities = dict(zip(predictions.paths, predictions.probabilities, strict=True))
        cards = render_image_gallery_of_examples(
            examples, predictions.names, probabilities, is_calibrated=True
        )
        kind = KIND_TITLES[evaluation.uncertainty.kinds[0].kind]
        title = f"Most uncertain images, by the mean {kind} of their labels"
        legend = render_image_gallery_legend(is_calibrated=True)
        doubtful = [markup_element("h3", title), legend, cards]
    return render_page_section(
        "uncertainty",
        "Uncertainty",
        render_label_uncertainty_tables(evaluation.uncertainty),
        render_page_plot_grid(plots),
        *doubtful,
    )


def _html_page_unseen_section(unseen: UnseenClasses | None, plots: Sequence[Plot]) -> Markup:
    if unseen is None:
        return Markup("")
    table = render_unseen_classes_metric_table(unseen.results)
    return render_page_section(
        "unseen",
        "Unseen classes",
        markup_element("p", describe_unseen_classes_in_report(unseen), class_="soft"),
        render_unseen_classes_ranking_table(unseen.results),
        markup_element("h3", "Calibration of seen and unseen classes"),
        markup_element("div", *map(render_page_plot_card, plots), table, class_="beside"),
    )


def _html_page_label_count_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    if evaluation.zero_shot_baseline is None and not plots:
        return Markup("")
    targets, known = evaluation.targets, evaluation.known
    sources = predictions_for_baseline_comparison(
        evaluation.predictions, evaluation.zero_shot_baseline
    )
    table = zero_shot_baseline_report_table(
        sources,
        baseline_comparison_ranking_metrics(sources, targets, known),
        threshold_labels_for_baseline_comparison(sources, targets, known),
    )
    return render_page_section(
        "label-counts",
        "Labels per image and co-occurrence" if plots else "Zero-shot baseline",
        describe_zero_shot_baseline_in_report(sources),
        table,
        *([render_page_plot_grid(plots)] if plots else []),
    )


def _html_page_label_section(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    predictions = evaluation.predictions
    labels = compute_label_table_statistics(
        predictions.names,
        evaluation.targets,
        evaluation.known,
        None if predictions.calibration is None else predictions.probabilities,
        evaluation.per_class,
    )
    note = markup_element(
        "p", "The table is sorted by average precision, lowest first.", class_="soft"
    )
    table = render_label_table(labels)
    beside = markup_element("div", *map(render_page_plot_card, plots[:1]), table, class_="beside")
    grid = [render_page_plot_grid(plots[1:])] if plots[1:] else []
    return render_page_section(
        "labels", "Accuracy and calibration of each label", note, beside, *grid
    )


def _html_page_example_section(evaluation: Evaluation) -> Markup:
    worst, best = evaluation.worst_examples, evaluation.best_examples
    if not best and not worst:
        return Markup("")
    predictions = evaluation.predictions
    is_calibrated = predictions.calibration is not None
    scores = predictions.probabilities if is_calibrated else predictions.scores
    scores_by_path = dict(zip(predictions.paths, scores, strict=True))
    children = [render_image_gallery_legend(is_calibrated=is_calibrated)]
    if any(example.heat_maps for example in (*worst, *best)):
        children.append(_html_page_heat_map_note())
    for title, examples in (
        ("Highest loss", worst),
        ("Lowest loss, among images with two or more positive labels", best),
    ):
        if examples:
            cards = render_image_gallery_of_examples(
                examples, predictions.names, scores_by_path, is_calibrated=is_calibrated
            )
            children += [markup_element("h3", title), cards]
    return render_page_section("images", "Images with the highest and lowest loss", *children)


def _html_page_heat_map_note() -> Markup:
    colours = markup_element(
        "span", "", class_="scale", role="img", aria_label="from purple to yellow"
    )
    scale = markup_element("span", "Low ", colours, " high", class_="nowrap")
    return markup_element("p", HEAT_MAP_NOTE, " ", scale, class_="soft", data_only="html")


def _html_page_retrieval_section(
    retrieval: RetrievalResults | None, plots: Sequence[Plot]
) -> Markup:
    if retrieval is None:
        return Markup("")
    table = search_results_table(retrieval)
    beside = markup_element("div", *map(render_page_plot_card, plots), table, class_="beside")
    examples = render_search_results_examples(retrieval.examples)
    return render_page_section(
        "queries", "Retrieval with queries of one or more labels", beside, examples
    )


def _html_page_search_section(searches: Sequence[QueryHits]) -> Markup:
    if not searches:
        return Markup("")
    note = markup_element("p", SEARCH_NOTE, class_="soft")
    return render_page_section(
        "searches", "Searches", note, render_image_gallery_of_search_hits(searches)
    )
