"""Create all plots of a report, by section."""

import numpy as np

from surelabel.decisions import compute_risk_coverage
from surelabel.evaluation import Evaluation
from surelabel.metrics import reliability_bins, reliability_bins_per_class
from surelabel.report.average_precision_plot import plot_average_precision
from surelabel.report.baseline_comparison import (
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)
from surelabel.report.calibration_budget import plot_calibration_budget
from surelabel.report.calibration_effect import plot_calibration_effect
from surelabel.report.cooccurrence import plot_cooccurrence
from surelabel.report.label_table import compute_label_table_statistics
from surelabel.report.label_uncertainty import LABEL_UNCERTAINTY_PLOT_NAMES
from surelabel.report.labels_per_image import plot_labels_per_image
from surelabel.report.plot_style import Plot
from surelabel.report.precision_recall_plots import PRECISION_RECALL_PLOT_NAMES
from surelabel.report.reliability_diagram import (
    BINS,
    describe_reliability_diagram_bins,
    plot_pooled_reliability_diagram,
)
from surelabel.report.reliability_per_label import plot_reliability_per_label
from surelabel.report.risk_coverage import plot_risk_coverage
from surelabel.report.score_histograms import plot_score_histograms
from surelabel.report.unseen_classes import (
    UnseenClasses,
    plot_unseen_classes_reliability,
    unseen_classes_report_reliability,
)

PLOT_FILE_NAMES = (
    *LABEL_UNCERTAINTY_PLOT_NAMES,
    *PRECISION_RECALL_PLOT_NAMES,
    "reliability_before",
    "reliability",
    "calibration_effect",
    "score_histograms",
    "risk_coverage",
    "calibration_budget",
    "labels_per_image",
    "cooccurrence",
    "reliability_per_label",
    "reliability_seen_unseen",
    "average_precision",
    "map_by_query_length",
)
PLOT_FILE_NAMES_0_1_0 = (
    "calibration",
    "confidence",
    "budget",
    "labels_together",
    "reliability_by_label",
    "reliability_unseen",
    "per_class",
    "queries",
)


def calibration_section_plots(evaluation: Evaluation, before: Evaluation | None) -> list[Plot]:
    """Return the calibration plots, or an empty list if the recognizer is not calibrated.

    Args:
        evaluation: Evaluation to plot.
        before: Earlier evaluation of the same images for comparison, such as before fitting.
    """
    predictions = evaluation.predictions
    if predictions.calibration is None:
        return []
    decisions = predictions.probabilities, evaluation.targets, evaluation.known
    bins, note = reliability_bins(*decisions, bins=BINS), _binning_note_of_plots(evaluation)
    plots: list[Plot] = []
    title = "Reliability diagram"
    if before is not None and before.predictions.calibration is not None:
        bins_before = reliability_bins(
            before.predictions.probabilities, before.targets, before.known, bins=BINS
        )
        plots.append(
            plot_pooled_reliability_diagram(
                bins_before,
                _binning_note_of_plots(before),
                name="reliability_before",
                title="Before: reliability diagram",
            )
        )
        title = "After: reliability diagram"
    plots.append(plot_pooled_reliability_diagram(bins, note, title=title))
    if evaluation.uncalibrated is not None:
        uncalibrated_bins = reliability_bins(
            evaluation.uncalibrated.probabilities, evaluation.targets, evaluation.known, bins=BINS
        )
        plots.append(
            plot_calibration_effect(
                bins,
                uncalibrated_bins,
                summary=evaluation.summary,
                uncalibrated_summary=evaluation.uncalibrated.summary,
                note=note,
            )
        )
    plots.append(plot_score_histograms(*decisions))
    if predictions.logits is not None:
        curve = compute_risk_coverage(predictions.logits, evaluation.targets, evaluation.known)
        plots.append(plot_risk_coverage(curve))
    if evaluation.calibration_budget is not None:
        plots.append(plot_calibration_budget(evaluation.calibration_budget))
    return plots


def label_count_section_plots(evaluation: Evaluation) -> list[Plot]:
    """Return the plots of labels per image and of co-occurrence, if the scores are calibrated."""
    labels_by_source = threshold_labels_for_baseline_comparison(
        predictions_for_baseline_comparison(evaluation.predictions, evaluation.zero_shot_baseline),
        evaluation.targets,
        evaluation.known,
    )
    plots = [
        plot_labels_per_image(labels_by_source),
        plot_cooccurrence(evaluation.predictions.names, labels_by_source),
    ]
    return [plot for plot in plots if plot is not None]


def per_label_section_plots(evaluation: Evaluation) -> list[Plot]:
    """Return the plots of the average precision and, if calibrated, of the reliability by label.

    A plot without a defined value or without a positive target is left out.
    """
    predictions = evaluation.predictions
    targets, known = evaluation.targets, evaluation.known
    probabilities = None if predictions.calibration is None else predictions.probabilities
    labels = compute_label_table_statistics(
        predictions.names, targets, known, probabilities, evaluation.per_class
    )
    plots = [plot_average_precision(labels.names, labels.average_precision, labels.prevalence)]
    if probabilities is not None:
        bins = reliability_bins_per_class(probabilities, targets, known, bins=BINS)
        plots.append(plot_reliability_per_label(labels, bins))
    return [plot for plot in plots if plot is not None]


def unseen_section_plots(evaluation: Evaluation, unseen: UnseenClasses) -> list[Plot]:
    """Return the reliability plot of seen and unseen classes, if the scores are calibrated."""
    predictions = evaluation.predictions
    if predictions.calibration is None:
        return []
    is_unseen = np.isin(predictions.names, list(unseen.names))
    bins = unseen_classes_report_reliability(
        predictions.probabilities, evaluation.targets, evaluation.known, is_unseen
    )
    ece = unseen.results.metrics_by_group["ece"]
    return [plot_unseen_classes_reliability(bins, ece, len(evaluation.targets))]


def _binning_note_of_plots(evaluation: Evaluation) -> str:
    n_images, n_labels = evaluation.targets.shape
    return describe_reliability_diagram_bins(n_images, n_labels, int(evaluation.known.sum()))
