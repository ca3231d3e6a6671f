"""Cross-validate one method: compute out-of-fold scores, calibration and log loss."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from surelabel.arrays import LOGIT_LIMIT, Array, Flags
from surelabel.calibration import cross_fitted_logits
from surelabel.config import Run
from surelabel.features import SentenceFeatures
from surelabel.methods import LearnsFromImages
from surelabel.metrics import log_loss_of_logits
from surelabel.metrics.mean_average_precision import mean_average_precision
from surelabel.progress import Progress, report_progress
from surelabel.recognizer.calibrating import select_run_calibrator
from surelabel.recognizer.fingerprints import checkpoint_of_fit
from surelabel.recognizer.fitting import (
    fitting_out_of_fold_scores,
    make_link_for_fitting,
    make_method_for_fitting,
)
from surelabel.recognizer.fitting_data import encode_fitting_data
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.method_candidates import MethodCandidate
from surelabel.recognizer.method_selection_record import MethodResult
from surelabel.recognizer.prediction_blocks import (
    compute_image_scores,
    half_precision_image_vectors,
    score_images_in_blocks,
)
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Features, SkippedImage
from surelabel.training import select_feature_batch_rows

WITH_ENCODER = "shipped with the encoder"


@dataclass(frozen=True)
class OutOfFoldScores:
    """Out-of-fold scores of n images and c labels, from methods that were fitted on other images.

    The scores of a method that requires no fit are computed directly.

    Attributes:
        raw: Log-odds, or scores if there is no link, ``(n, c)``.
        vectors: Vectors of the images, ``(n, d)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        paths: Paths of the images, or identifiers of precomputed features, length n.
        rows: Row index of each image in the dataset, ``(n,)``.
        skipped: Images that could not be read, if the method requires no fit. For other methods,
            the list is empty, because a warning about these images was already given.
    """

    raw: Array
    vectors: npt.NDArray[np.float16]
    targets: Array
    known: Flags
    paths: Sequence[str]
    rows: npt.NDArray[np.int64]
    skipped: Sequence[SkippedImage] = ()


@dataclass(frozen=True)
class MethodComparison:
    """Cross-validated result of a method with one calibration, and the out-of-fold scores.

    Attributes:
        run: Run with the method.
        result: Result of the method.
        scores: Scores of the images.
        is_calibrated_by_folds: Whether the calibrator was fitted on other folds. If False, the
            calibration is shipped with the encoder.
    """

    run: Run
    result: MethodResult
    scores: OutOfFoldScores
    is_calibrated_by_folds: bool


def cross_validate_candidate(
    candidate: MethodCandidate,
    source: LabelledInput,
    folds: int,
    *,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> list[MethodComparison]:
    """Return the results of a method with cross-fitted and, if available, shipped calibration.

    Args:
        candidate: Method with a recognizer.
        source: Images or features with labels.
        folds: Number of folds, >= 2.
        checkpoint: File beside which the fits of the folds are stored. If None, no fit is stored.
        progress: Function called with the number of encoded images and the number of all images,
            then with the number of finished folds and the number of folds.

    Raises:
        DataError: If no image can be read.
    """
    start = time.perf_counter()
    recognizer, run = candidate.recognizer, candidate.recognizer.run
    scores = out_of_fold_scores(recognizer, source, folds, checkpoint=checkpoint, progress=progress)
    calibrator = select_run_calibrator(run, scores.raw, scores.targets, scores.known)
    cross_fitted = cross_fitted_logits(
        calibrator.make_calibrator,
        scores.raw,
        scores.targets,
        scores.known,
        vectors=scores.vectors,
        folds=folds,
        seed=run.seed,
    )
    logits = {f"{calibrator.name}, {folds} folds": cross_fitted}
    if recognizer.method.learns_from == "nothing" and recognizer.calibrated_on is not None:
        logits[WITH_ENCODER] = _logits_without_fit(recognizer, scores)
    seconds = time.perf_counter() - start
    return [
        MethodComparison(
            run,
            MethodResult(
                method=run.method.name,
                calibration=calibration,
                encoder_passes=candidate.encoder_passes,
                log_loss=log_loss_of_logits(values, scores.targets, scores.known),
                standard_error=log_loss_standard_error(values, scores.targets, scores.known),
                mean_average_precision=_mean_average_precision(values, scores),
                seconds=seconds,
            ),
            scores,
            is_calibrated_by_folds=values is cross_fitted,
        )
        for calibration, values in logits.items()
    ]


def out_of_fold_scores(
    recognizer: Recognizer,
    source: LabelledInput,
    folds: int,
    *,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> OutOfFoldScores:
    """Return the scores of the readable images by methods that were fitted on the other folds.

    The arguments are those of :func:`cross_validate_candidate`. A method that is not fitted scores
    all images at once.

    Raises:
        DataError: If no image can be read.
    """
    labelled, method = recognizer.align_labels(source), recognizer.method
    if method.learns_from == "nothing":
        images = score_images_in_blocks(
            source, method, recognizer.encoder, recognizer.cache, progress=progress
        )
        return OutOfFoldScores(
            recognizer.logits_of(images.scores),
            images.vectors,
            labelled.targets[images.rows],
            labelled.known[images.rows],
            [labelled.paths[row] for row in images.rows],
            images.rows,
            images.skipped,
        )
    run, encoder, names = recognizer.run, recognizer.encoder, recognizer.names_with_aliases
    data = encode_fitting_data(
        source, labelled, method, encoder, recognizer.cache, progress=progress
    )
    assert not isinstance(data.features, SentenceFeatures)  # of images
    assert data.rows is not None
    fold = data.assign_folds(folds, run.seed)
    raw: Array
    if method.learns_from == "images":
        assert isinstance(data.features, Features)  # such methods use views
        raw = _unlabelled_out_of_fold_scores(recognizer, data.features, fold, progress)
    else:
        path = checkpoint and f"{checkpoint}.fold-{run.method.name}"  # save deletes these files
        saved_state = checkpoint_of_fit(path, run, names, data)
        scores = fitting_out_of_fold_scores(
            run, encoder, names, data, fold=fold, checkpoint=saved_state, progress=progress
        )
        link = make_link_for_fitting(run)
        raw = link.logits(scores.astype(np.float64)) if link else scores.astype(np.float64)
    return OutOfFoldScores(
        raw,
        half_precision_image_vectors(data.features),
        data.targets.numpy().astype(np.float64),
        data.known.numpy(),
        data.paths,
        data.rows,
    )


def _unlabelled_out_of_fold_scores(
    recognizer: Recognizer,
    features: Features,
    fold: npt.NDArray[np.int64],
    progress: Progress | None,
) -> Array:
    """Return scores ``(n, c)`` of methods that were fitted on other images, without labels."""
    folds = int(fold.max()) + 1
    scores = np.empty((len(fold), len(recognizer.names)))
    for k in range(folds):
        method = make_method_for_fitting(
            recognizer.run, recognizer.encoder, recognizer.names_with_aliases
        )
        assert isinstance(method, LearnsFromImages)  # students are not selectable
        train, test = (torch.from_numpy(np.flatnonzero(rows)) for rows in (fold != k, fold == k))
        method.fit_unlabelled(select_feature_batch_rows(features, train))
        scores[test] = compute_image_scores(method, select_feature_batch_rows(features, test))
        report_progress(progress, k + 1, folds, "folds")
    return scores


def _logits_without_fit(recognizer: Recognizer, scores: OutOfFoldScores) -> Array:
    """Return the log-odds of the calibration or of the link that are shipped with the encoder."""
    if recognizer.calibration is not None:
        return recognizer.calibration.logits(scores.raw, scores.vectors)
    return scores.raw.clip(-LOGIT_LIMIT, LOGIT_LIMIT)


def log_loss_standard_error(logits: Array, targets: Array, known: Flags) -> float:
    """Return the standard error of the mean log loss over images, in nats.

    The targets of an image are not independent, so images are the sampling units:

        standard error = sqrt(n / (n - 1) · sum over images of (S_i - m_i · L)²) / sum of m_i

    S_i is the sum of the losses of image i over its m_i known targets. n is the number of images
    with a known target, and L is the mean log loss.

    Args:
        logits: Finite log-odds of images and labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Returns:
        Standard error, or NaN if fewer than two images have a known target.

    Source:
        Cochran, Sampling Techniques, 1977, section 2.11, for the variance of a ratio.

    Example:
        >>> known = np.ones((2, 1), dtype=bool)
        >>> log_loss_standard_error(np.array([[0.0], [0.0]]), np.array([[1.0], [0.0]]), known)
        0.0
    """
    z, y = logits[known.any(axis=1)], targets[known.any(axis=1)]
    mask = known[known.any(axis=1)]
    n_images = len(z)
    if n_images < 2:
        return float("nan")
    losses = np.where(mask, np.logaddexp(0, z) - np.where(mask, y, 0) * z, 0).sum(axis=1)
    counts = mask.sum(axis=1)
    deviations = losses - counts * losses.sum() / counts.sum()
    variance = n_images / (n_images - 1) * (deviations**2).sum()
    return float(np.sqrt(variance) / counts.sum())


def _mean_average_precision(logits: Array, scores: OutOfFoldScores) -> float:
    """Return the mean average precision, or NaN if a target is neither 0 nor 1."""
    if not np.isin(scores.targets[scores.known], (0, 1)).all():
        return float("nan")
    return mean_average_precision(logits, scores.targets, scores.known)
