"""Evaluate predictions against the targets of the same images."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.decisions import ValidationRecord
from surelabel.errors import InputError
from surelabel.evaluation.calibration_budget import CalibrationBudget
from surelabel.evaluation.examples import Example, select_evaluation_examples
from surelabel.evaluation.label_uncertainty import UncertaintyEvaluation
from surelabel.evaluation.ranking_values import prediction_ranking_values
from surelabel.evaluation.uncalibrated import UncalibratedMetrics, evaluate_uncalibrated
from surelabel.mapped_arrays import to_mapped_array
from surelabel.metrics import (
    BINARY_TARGET_METRICS,
    PROBABILITY,
    PROBABILITY_PER_CLASS,
    RANKING,
    RANKING_PER_CLASS,
    ConfidenceInterval,
    noise_floor,
)
from surelabel.records import LabelledImages, Predictions
from surelabel.summaries import Summary, format_summary_value

HEADLINE_METRICS = ("mean_average_precision", "brier_skill", "log_loss", "ece")
NOISE_FLOOR_METRICS = (  # metrics that are above 0 even for perfectly calibrated probabilities
    "ece",
    "ece_of_candidates",
    "ace",
    "mce",
)


@dataclass(frozen=True)
class Evaluation:
    """Accuracy and calibration of predictions.

    Attributes:
        predictions: Evaluated predictions.
        targets: Targets of n images and c labels in [0, 1], ``(n, c)``. Unknown targets are 0.
        known: True where the target is known, ``(n, c)``.
        summary: Value over all images and labels, by metric name.
        per_class: Value of each class, ``(c,)``, by metric name. Undefined values are NaN.
        undefined_classes: Number of classes without a defined value, by metric name.
        noise_floor: Expected value for a perfectly calibrated recognizer, by metric name.
        class_noise_floor: Noise floor of the mean over classes, by metric name.
        worst_examples: At most six images with the highest loss.
        best_examples: At most six images with the lowest loss, among images with at least two
            positive labels.
        uncalibrated: Metrics of the same images and labels without the calibrator. If None, there
            is no calibrator, or the input of the calibrator is not log-odds.
        calibration_budget: Calibration error by number of labelled images for the calibrator. If
            None, the calibration budget was not estimated.
        intervals: 95 % bootstrap confidence interval of each main metric, by metric name. If the
            intervals were not computed, the mapping is empty.
        zero_shot_baseline: Predictions of the unadapted encoder for the same images and labels. If
            None, the evaluated predictions are the baseline, or the baseline was not computed.
        uncertainty: Evaluation of each kind of uncertainty of the recognizer. If None, the
            predictions are uncalibrated, or the uncertainty was not evaluated.
        validation_record: Validation record of the recognizer, from which a report computes its
            operating points. If None, the record does not exist or is unknown.
    """

    predictions: Predictions
    targets: Array
    known: Flags
    summary: dict[str, float]
    per_class: dict[str, Array]
    undefined_classes: dict[str, int]
    noise_floor: dict[str, float]
    class_noise_floor: dict[str, float]
    worst_examples: tuple[Example, ...]
    best_examples: tuple[Example, ...]
    uncalibrated: UncalibratedMetrics | None = None
    calibration_budget: CalibrationBudget | None = None
    intervals: Mapping[str, ConfidenceInterval] = field(default_factory=dict)
    zero_shot_baseline: Predictions | None = None
    uncertainty: UncertaintyEvaluation | None = None
    validation_record: ValidationRecord | None = None

    def __repr__(self) -> str:
        """Return the main metrics with the available intervals and noise floors."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    @property
    def class_means(self) -> dict[str, float]:
        """Return the mean over the classes with a defined value, or NaN without any, by metric."""
        defined = {name: values[~np.isnan(values)] for name, values in self.per_class.items()}
        return {name: float(v.mean()) if v.size else np.nan for name, v in defined.items()}

    def _summary(self) -> Summary:
        properties = {
            "images": len(self.predictions),
            "labels": len(self.predictions.names),
            "calibration": self.predictions.calibration,
        }
        header = ("metric", "value", "95 % interval", "noise floor")
        rows = [self._summary_row(name) for name in HEADLINE_METRICS if name in self.summary]
        return Summary("Evaluation", properties, header, rows, len(rows))

    def _summary_row(self, metric: str) -> tuple[str, str, str, str]:
        """Return the name, the value, the interval and the noise floor of a metric as texts."""
        interval, floor = self.intervals.get(metric), self.noise_floor.get(metric)
        return (
            metric,
            format_summary_value(self.summary[metric]),
            "" if interval is None else f"{interval.low:.4g} to {interval.high:.4g}",
            "" if floor is None else format_summary_value(floor),
        )


def find_label_rows_for_evaluation(
    predictions: Predictions, labelled: LabelledImages
) -> npt.NDArray[np.int64]:
    """Return the row index of each of n predicted images in the labelled dataset, ``(n,)``.

    Raises:
        InputError: If a predicted image is not in ``labelled``, or if the names or their order
            differ.
    """
    if list(predictions.names) != list(labelled.names):
        raise InputError(
            "The predictions and the dataset must have the same labels in the same order; got "
            f"labels that start with {list(predictions.names)[:5]} and {list(labelled.names)[:5]}. "
            "Load the dataset with the labels of the predictions."
        )
    row_of_path = {path: row for row, path in enumerate(labelled.paths)}
    unlabelled = [p for p in predictions.paths if p not in row_of_path]
    if unlabelled:
        raise InputError(
            f"The dataset must contain all predicted images; got {len(unlabelled)} of "
            f"{len(predictions)} images that are not in the dataset, such as {unlabelled[0]}. "
            "Annotate these images, or leave out their predictions."
        )
    return np.array([row_of_path[p] for p in predictions.paths])


def evaluate_predictions(
    predictions: Predictions,
    labelled: LabelledImages,
    *,
    uncalibrated_logits: npt.ArrayLike | None = None,
) -> Evaluation:
    """Evaluate predictions against the targets of the same images.

    Ranking metrics sort images by the scores, or by the logits if the calibrator changes the order
    of images. Probability metrics and their noise floor are computed only for calibrated
    predictions. If a target is graded, that is, between 0 and 1, the summary contains only metrics
    of graded targets, such as the Brier score.

    Args:
        predictions: Predictions to evaluate.
        labelled: Dataset with the targets of the predicted images and with the same names.
            Additional images are ignored.
        uncalibrated_logits: Input of the calibrator for the same images and labels, ``(n, c)`` in
            the order of ``predictions``. If None, uncalibrated metrics are not computed.

    Raises:
        InputError: If the names or their order differ, if a predicted image is not in ``labelled``,
            if no target is known, or if the targets are graded and the predictions are not
            calibrated. If ``uncalibrated_logits`` has another shape, contains a value that is not
            finite, or is given for uncalibrated predictions.
    """
    rows = find_label_rows_for_evaluation(predictions, labelled)
    targets, known = labelled.targets, labelled.known
    if not np.array_equal(rows, np.arange(len(targets))):
        targets, known = to_mapped_array(targets[rows]), to_mapped_array(known[rows])
    if not known.any():
        raise InputError(
            "At least one target of the predicted images must be known; got only unknown targets. "
            "Check that the dataset contains annotations of the predicted labels."
        )
    if uncalibrated_logits is not None and predictions.calibration is None:
        raise InputError(
            "uncalibrated_logits require calibrated predictions; got uncalibrated predictions. "
            "Leave out uncalibrated_logits, or calibrate the recognizer before the prediction."
        )
    order = prediction_ranking_values(predictions)
    left_out = _metrics_without_graded_targets(predictions, targets, known)
    summary = {
        name: metric(order, targets, known)
        for name, metric in RANKING.items()
        if name not in left_out
    }
    per_class = {
        name: metric(order, targets, known)
        for name, metric in RANKING_PER_CLASS.items()
        if name not in left_out
    }
    floor: dict[str, float] = {}
    class_floor: dict[str, float] = {}
    if predictions.calibration is not None:
        probabilities = to_mapped_array(predictions.probabilities)
        summary |= {
            name: metric(probabilities, targets, known)
            for name, metric in PROBABILITY.items()
            if name not in left_out
        }
        per_class |= {
            name: metric(probabilities, targets, known)
            for name, metric in PROBABILITY_PER_CLASS.items()
            if name not in left_out
        }
        floor = {
            name: noise_floor(PROBABILITY[name], probabilities, known)
            for name in NOISE_FLOOR_METRICS
        }
        class_floor = {
            name: noise_floor(_evaluation_metric_mean_over_classes(name), probabilities, known)
            for name in NOISE_FLOOR_METRICS
        }
    worst, best = select_evaluation_examples(predictions, targets, known)
    return Evaluation(
        predictions=predictions,
        targets=targets,
        known=known,
        summary=summary,
        per_class=per_class,
        undefined_classes={name: int(np.isnan(values).sum()) for name, values in per_class.items()},
        noise_floor=floor,
        class_noise_floor=class_floor,
        worst_examples=worst,
        best_examples=best,
        uncalibrated=None
        if uncalibrated_logits is None
        else evaluate_uncalibrated(uncalibrated_logits, targets, known),
    )


def _metrics_without_graded_targets(
    predictions: Predictions, targets: Array, known: Flags
) -> frozenset[str]:
    """Return the metrics that the targets do not allow: none, or those of targets 0 and 1.

    Raises:
        InputError: If the targets are graded, and the predictions are not calibrated.
    """
    values = targets[known]
    if ((values == 0) | (values == 1)).all():
        return frozenset()
    if predictions.calibration is None:
        raise InputError(
            "Graded targets, which are between 0 and 1, require calibrated predictions; got "
            "uncalibrated predictions. Calibrate the recognizer, or round the targets."
        )
    return BINARY_TARGET_METRICS


def _evaluation_metric_mean_over_classes(metric: str) -> Callable[[Array, Array, Flags], float]:
    """Return a function that computes the mean of a metric over classes, or NaN if undefined."""

    def mean(probabilities: Array, targets: Array, known: Flags) -> float:
        values = PROBABILITY_PER_CLASS[metric](probabilities, targets, known)
        return float(values[~np.isnan(values)].mean()) if not np.isnan(values).all() else np.nan

    return mean
