"""Convert all metrics of a report to JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.decisions import compute_risk_coverage
from surelabel.evaluation import CalibrationBudget, Evaluation, Example
from surelabel.metrics import ReliabilityBins, reliability_bins, reliability_bins_per_class
from surelabel.report.baseline_comparison import (
    BASELINE,
    ThresholdedLabels,
    baseline_comparison_pairs_per_image,
    baseline_comparison_ranking_metrics,
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)
from surelabel.report.bin_sensitivity import calibration_errors_for_bin_sensitivity
from surelabel.report.decision_section import decision_section_as_json
from surelabel.report.high_probability_accuracy import measure_high_probability_accuracy
from surelabel.report.image_gallery import QueryHits
from surelabel.report.json_values import strict_json_value
from surelabel.report.label_table import compute_label_table_statistics
from surelabel.report.label_uncertainty import label_uncertainty_as_json
from surelabel.report.reliability_diagram import BINS, reliability_diagram_consistency_band
from surelabel.report.search_results import RetrievalResults
from surelabel.report.unseen_classes import UnseenClasses, unseen_classes_report_reliability

FORMAT, FORMAT_0_1_0 = "surelabel report 2", "surelabel report 1"


def report_as_json(
    evaluation: Evaluation,
    before: Evaluation | None = None,
    retrieval: RetrievalResults | None = None,
    searches: Sequence[QueryHits] = (),
    unseen: UnseenClasses | None = None,
) -> str:
    """Return all metrics of a report as the text of a JSON file; undefined values are ``null``.

    Args:
        evaluation: Evaluation to report.
        before: Earlier evaluation of the same images for comparison.
        retrieval: Retrieval metrics by query length.
        searches: Queries to an index with their hits.
        unseen: Unseen classes and their metrics.
    """
    predictions = evaluation.predictions
    targets, known = evaluation.targets, evaluation.known
    is_calibrated = predictions.calibration is not None
    labels = compute_label_table_statistics(
        predictions.names,
        targets,
        known,
        predictions.probabilities if is_calibrated else None,
        evaluation.per_class,
    )
    sources = predictions_for_baseline_comparison(predictions, evaluation.zero_shot_baseline)
    labels_by_source = threshold_labels_for_baseline_comparison(sources, targets, known)
    contents = {
        "format": FORMAT,
        "model": predictions.model,
        "calibration": predictions.calibration,
        "images": len(predictions),
        "decisions": int(known.sum()),
        "names": list(predictions.names),
        "summary": evaluation.summary,
        "intervals": {name: asdict(value) for name, value in evaluation.intervals.items()},
        "noise_floor": evaluation.noise_floor,
        "class_means": evaluation.class_means,
        "class_noise_floor": evaluation.class_noise_floor,
        "undefined": evaluation.undefined_classes,
        "before": before and _report_json_before(before),
        "per_class": {
            "positives": labels.n_positives,
            "known": known.sum(axis=0),
            "prevalence": labels.prevalence,
            "mean_probability": labels.mean_probability,
            **evaluation.per_class,
        },
        "reliability": _report_json_pooled_bins(evaluation),
        **decision_section_as_json(evaluation),
        **_report_json_calibration(evaluation),
        "uncertainty": evaluation.uncertainty and label_uncertainty_as_json(evaluation.uncertainty),
        "doubtful": []
        if evaluation.uncertainty is None
        else [_report_json_example(e) for e in evaluation.uncertainty.doubtful_examples],
        "zero_shot_baseline": evaluation.zero_shot_baseline
        and {
            "calibration": evaluation.zero_shot_baseline.calibration,
            "summary": {
                metric: values[BASELINE]
                for metric, values in baseline_comparison_ranking_metrics(
                    sources, targets, known
                ).items()
            },
        },
        "labels_per_image": {
            source: _report_json_label_counts(labels) for source, labels in labels_by_source.items()
        }
        or None,
        "unseen": unseen and _report_json_unseen_classes(evaluation, unseen),
        "retrieval": retrieval and asdict(retrieval),
        "searches": [asdict(search) for search in searches],
        "worst": [_report_json_example(example) for example in evaluation.worst_examples],
        "best": [_report_json_example(example) for example in evaluation.best_examples],
        "skipped": [{"path": s.path, "reason": s.reason} for s in predictions.skipped],
    }
    text = json.dumps(strict_json_value(contents), indent=1, allow_nan=False, ensure_ascii=False)
    return text + "\n"


def _report_json_before(before: Evaluation) -> dict[str, Any]:
    return {
        "model": before.predictions.model,
        "calibration": before.predictions.calibration,
        "summary": before.summary,
        "noise_floor": before.noise_floor,
        "reliability": _report_json_pooled_bins(before),
    }


def _report_json_pooled_bins(evaluation: Evaluation) -> dict[str, Any] | None:
    if evaluation.predictions.calibration is None:
        return None
    return _report_json_decision_bins(
        evaluation.predictions.probabilities, evaluation.targets, evaluation.known
    )


def _report_json_decision_bins(
    probabilities: Array, targets: Array, known: Flags
) -> dict[str, Any]:
    return _report_json_bins(reliability_bins(probabilities, targets, known, bins=BINS))


def _report_json_bins(bins: ReliabilityBins) -> dict[str, Any]:
    low, high = reliability_diagram_consistency_band(bins)
    return {
        "bins": f"{BINS} of equal width on [0, 1], closed on the left; the last bin includes 1",
        "counts": bins.counts,
        "confidence": bins.confidence,
        "accuracy": bins.accuracy,
        "consistency_low": low,
        "consistency_high": high,
    }


def _report_json_calibration(evaluation: Evaluation) -> dict[str, Any]:
    """Return the metrics of calibrated predictions, with None for metrics that do not apply."""
    predictions, uncalibrated = evaluation.predictions, evaluation.uncalibrated
    targets, known = evaluation.targets, evaluation.known
    values: dict[str, Any] = {
        "reliability_per_class": None,
        "bin_sensitivity": None,
        "uncalibrated": None,
        "risk_coverage": None,
        "high_probability_accuracy": None,
        "calibration_budget": evaluation.calibration_budget
        and _report_json_calibration_budget(evaluation.calibration_budget),
    }
    if uncalibrated is not None:
        values["uncalibrated"] = {
            "summary": uncalibrated.summary,
            "reliability": _report_json_decision_bins(uncalibrated.probabilities, targets, known),
        }
    if predictions.calibration is not None:
        decisions = predictions.probabilities, targets, known
        bins = reliability_bins_per_class(*decisions, bins=BINS)
        values["reliability_per_class"] = _report_json_bins(bins)
        accuracy = measure_high_probability_accuracy(*decisions)
        values["high_probability_accuracy"] = accuracy and asdict(accuracy)
        values["bin_sensitivity"] = calibration_errors_for_bin_sensitivity(*decisions)
        if predictions.logits is not None:
            values["risk_coverage"] = asdict(
                compute_risk_coverage(predictions.logits, targets, known)
            )
    return values


def _report_json_unseen_classes(evaluation: Evaluation, unseen: UnseenClasses) -> dict[str, Any]:
    predictions, reliability = evaluation.predictions, None
    if predictions.calibration is not None:
        is_unseen = np.isin(predictions.names, list(unseen.names))
        bins_by_group = unseen_classes_report_reliability(
            predictions.probabilities, evaluation.targets, evaluation.known, is_unseen
        )
        reliability = {group: _report_json_bins(bins) for group, bins in bins_by_group.items()}
    return {"names": list(unseen.names), **asdict(unseen.results), "reliability": reliability}


def _report_json_label_counts(labels: ThresholdedLabels) -> dict[str, Any]:
    """Return the numbers of labels and label pairs per image, with histograms over images."""
    positive = labels.cooccurrence.positive
    return {
        "threshold": labels.threshold,
        "per_image": labels.counts.means,
        "with_half_or_more": labels.labels_above_half,
        "precision": labels.precision,
        "histograms": labels.counts.histograms,
        "pairs": {
            "predicted": baseline_comparison_pairs_per_image(labels.cooccurrence.predicted),
            "positive": None if positive is None else baseline_comparison_pairs_per_image(positive),
            "mean_absolute_difference": labels.cooccurrence.mean_absolute_difference,
        },
    }


def _report_json_calibration_budget(budget: CalibrationBudget) -> dict[str, Any]:
    return {**asdict(budget), "sufficient_size": budget.sufficient_size}


def _report_json_example(example: Example) -> dict[str, Any]:
    return {
        "path": example.path,
        "loss": example.loss,
        "tags": [
            {"label": label.name, "value": label.score, "is_positive": label.is_positive}
            for label in example.labels
        ],
        "missed": list(example.missed_labels),
    }
