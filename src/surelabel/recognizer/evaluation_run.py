"""Evaluate a recognizer on labelled images."""

from dataclasses import replace

import numpy as np

from surelabel.calibration.fitting.input_validation import contains_both_classes
from surelabel.evaluation import (
    CalibrationBudget,
    Evaluation,
    Example,
    UncertaintyEvaluation,
    estimate_calibration_budget,
    evaluate_predictions,
    evaluate_uncertainties,
    evaluation_confidence_intervals,
)
from surelabel.evaluation.calibration_budget import MIN_LABELLED_IMAGES
from surelabel.methods import LocalizesLabels
from surelabel.progress import Progress
from surelabel.recognizer.calibrating import select_run_calibrator
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.random_rows import take_random_rows
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.region_localization import localize_labels
from surelabel.recognizer.threshold_selection import validation_record_for_thresholds
from surelabel.recognizer.uncertainty import BERNOULLI_VARIANCE, bernoulli_variances
from surelabel.recognizer.zero_shot_baseline import predict_zero_shot_baseline
from surelabel.records import LabelledFeatures


def basic_evaluation_run(
    recognizer: Recognizer, test: LabelledInput, *, progress: Progress | None = None
) -> Evaluation:
    """Predict labelled images and compute the metrics of the predictions.

    Unlike this function, ``evaluate`` also computes confidence intervals, the zero-shot baseline,
    the calibration budget (number of labelled images that calibration needs) and heat maps of
    example images. If the recognizer was calibrated on precomputed scores, the calibration rows
    have cross-fitted probabilities. If the dataset states how its rows were chosen, only the random
    rows are used.
    """
    test = take_random_rows(test, "The evaluation")
    predictions = recognizer.predict(test, progress=progress)
    predictions = recognizer.cross_fitted_predictions(test, predictions)
    return evaluate_predictions(
        predictions,
        recognizer.align_labels(test),
        uncalibrated_logits=recognizer.uncalibrated_logits(predictions),
    )


def evaluate(
    recognizer: Recognizer, test: LabelledInput, *, progress: Progress | None = None
) -> Evaluation:
    """Return metrics, confidence intervals, baseline, uncertainty and examples of labelled images.

    The zero-shot baseline uses the encoder of the recognizer. If the recognizer is itself
    zero-shot, there is no baseline. If the method or the encoder supports localization, examples
    include heat maps. Operating points use the validation record of the recognizer.

    Args:
        recognizer: Fitted recognizer.
        test: Labelled images or precomputed features with labels. If the dataset states how its
            rows were chosen, only the random rows are used.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        NotFitted: If the recognizer has to be fitted first.
        InputError: If ``test`` has no known target of a label of the recognizer. Also if the
            dataset states how its rows were chosen, and no annotated row is random.
        DataError: If no image can be read.
    """
    test = take_random_rows(test, "The evaluation")
    evaluation = basic_evaluation_run(recognizer, test, progress=progress)
    evaluation = replace(
        evaluation,
        intervals=evaluation_confidence_intervals(evaluation),
        calibration_budget=_calibration_budget_of_evaluation_run(recognizer, evaluation),
        zero_shot_baseline=predict_zero_shot_baseline(recognizer, test, evaluation.predictions),
        uncertainty=_uncertainty_of_evaluation_run(recognizer, test, evaluation),
        validation_record=validation_record_for_thresholds(recognizer),
    )
    has_heat_maps = isinstance(recognizer.method, LocalizesLabels)
    can_localize = has_heat_maps or recognizer.encoder.patch_kinds
    if isinstance(test, LabelledFeatures) or not can_localize:
        return evaluation
    labels_by_path = {
        example.path: [tag.name for tag in example.labels]
        for example in (*evaluation.worst_examples, *evaluation.best_examples)
    }
    regions = localize_labels(recognizer, dict(sorted(labels_by_path.items())))

    def with_regions(example: Example) -> Example:
        return replace(example, regions=regions.get(example.path))

    return replace(
        evaluation,
        worst_examples=tuple(map(with_regions, evaluation.worst_examples)),
        best_examples=tuple(map(with_regions, evaluation.best_examples)),
    )


def _uncertainty_of_evaluation_run(
    recognizer: Recognizer, test: LabelledInput, evaluation: Evaluation
) -> UncertaintyEvaluation | None:
    """Evaluate all kinds of uncertainty of the recognizer, or return None if it is uncalibrated."""
    predictions = evaluation.predictions
    if predictions.calibration is None or predictions.logits is None:
        return None
    uncertainties = {BERNOULLI_VARIANCE: bernoulli_variances(predictions.logits)}
    for kind in recognizer.uncertainty_kinds:
        if kind not in uncertainties:
            values = recognizer.predict(test, uncertainty=kind).uncertainty
            assert values is not None  # requested
            uncertainties[kind] = values
    return evaluate_uncertainties(predictions, evaluation.targets, evaluation.known, uncertainties)


def _calibration_budget_of_evaluation_run(
    recognizer: Recognizer, evaluation: Evaluation
) -> CalibrationBudget | None:
    """Estimate how many labelled images the calibrator of the run needs.

    If there are too few images for the estimate, or if all known targets are equal, return None.
    """
    if evaluation.known.any(axis=1).sum() < MIN_LABELLED_IMAGES:
        return None
    raw = recognizer.logits_of(evaluation.predictions.scores)
    targets, known = evaluation.targets, evaluation.known
    if not contains_both_classes(np.where(known, targets, 0), known):
        return None
    return estimate_calibration_budget(
        select_run_calibrator(recognizer.run, raw, targets, known).make_calibrator,
        raw,
        targets,
        known,
        vectors=evaluation.predictions.features,
    )
