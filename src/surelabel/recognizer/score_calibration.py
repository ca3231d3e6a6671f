"""Calibrate precomputed scores: compute log-odds of cosines and cross-fitted log-odds of rows."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import LOGIT_LIMIT, Array, Flags
from surelabel.calibration import CALIBRATORS, cross_fitted_logits
from surelabel.config import Run
from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.encoders.image_only.precomputed_scores import PrecomputedScores
from surelabel.errors import DataError, InputError
from surelabel.methods import Method
from surelabel.recognizer.calibrating import MIN_RECORD_IMAGES, RECORD_FOLDS
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.vector_normalization import precomputed_vectors
from surelabel.records import LabelledFeatures, Predictions
from surelabel.records.calibration_description import CROSS_FITTED


@dataclass(frozen=True, eq=False)
class CrossFittedScoreRows:
    """Cross-fitted log-odds of calibration rows, from calibrators fitted on other rows.

    Attributes:
        keys: Hash of the name and the scores of each of n rows, ``(n,)``.
        logits: Calibrated log-odds of n rows and c labels, ``(n, c)``.
    """

    keys: npt.NDArray[np.uint64]
    logits: npt.NDArray[np.float32]

    def predictions(self, predictions: Predictions, keys: npt.NDArray[np.uint64]) -> Predictions:
        """Return predictions with the cross-fitted log-odds of the calibration rows.

        The description of the calibration states the number of calibration rows. If there are no
        calibration rows, the predictions are returned unchanged.

        Args:
            predictions: Calibrated predictions of m rows.
            keys: Hash of each row, ``(m,)``.
        """
        order = np.argsort(self.keys)
        position = np.searchsorted(self.keys, keys, sorter=order).clip(max=len(order) - 1)
        row = order[position]
        is_calibration_row = self.keys[row] == keys
        if predictions.logits is None or not is_calibration_row.any():
            return predictions
        logits = np.where(is_calibration_row[:, None], self.logits[row], predictions.logits)
        description = (
            f"{predictions.calibration}; {CROSS_FITTED} probabilities of "
            f"{is_calibration_row.sum():,} of {format_count(len(keys), predictions.row_noun)} "
            f"(calibration {predictions.row_noun}s)"
        )
        return replace(predictions, logits=logits, calibration=description)

    def recalibrated(
        self, scale: float, shift: float, rows: "CrossFittedScoreRows"
    ) -> "CrossFittedScoreRows":
        """Return the rows after a recalibration, with the rows of the recalibration.

        Args:
            scale: Factor of the log-odds, above 0.
            shift: Constant that is added to the scaled log-odds.
            rows: Rows of the recalibration, with their cross-fitted log-odds.
        """
        is_earlier = ~np.isin(self.keys, rows.keys)
        earlier = (scale * self.logits[is_earlier] + shift).clip(-LOGIT_LIMIT, LOGIT_LIMIT)
        return CrossFittedScoreRows(
            np.concatenate([self.keys[is_earlier], rows.keys]),
            np.concatenate([earlier, rows.logits]).astype(np.float32),
        )

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the arrays for a file."""
        return {"keys": self.keys, "logits": self.logits}

    @classmethod
    def restore(cls, arrays: dict[str, npt.NDArray[Any]], n_labels: int) -> "CrossFittedScoreRows":
        """Return the rows from the arrays of a file.

        Raises:
            DataError: If an array is missing, or if its type, shape or a value is invalid.
        """
        keys, logits = arrays.get("keys", np.empty(0)), arrays.get("logits", np.empty(0))
        is_valid = keys.dtype == np.uint64 and logits.dtype == np.float32 and keys.size > 0
        if not is_valid or keys.ndim != 1 or logits.shape != (len(keys), n_labels):
            raise DataError(
                "Cross-fitted rows must have uint64 keys (n,) and float32 log-odds (n, "
                f"{n_labels}); got {keys.dtype} {keys.shape} and {logits.dtype} {logits.shape}. "
                "Calibrate again."
            )
        if not (np.abs(logits) <= LOGIT_LIMIT).all():  # False for NaN
            raise DataError(
                f"Cross-fitted log-odds must be in [-{LOGIT_LIMIT:g}, {LOGIT_LIMIT:g}]; got values "
                "out of range or NaN. Calibrate again."
            )
        return cls(keys, logits)


def cross_fit_score_rows(
    run: Run,
    encoder: Encoder,
    source: object,
    raw: Array,
    targets: Array,
    known: Flags,
    vectors: npt.NDArray[np.floating],
    tree: LabelTreeProjection | None = None,
) -> CrossFittedScoreRows | None:
    """Return log-odds of calibration rows from calibrators that were fitted on other rows.

    Args:
        run: Run with the calibrator and the seed.
        encoder: Encoder of the recognizer.
        source: Calibration data of n rows.
        raw: Log-odds before calibration, or raw scores, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        vectors: Vectors of the rows, ``(n, d)``.
        tree: Projection of the log-odds to a tree of labels. If None, there is no tree.

    Returns:
        Cross-fitted log-odds of the rows with a known target, or None if the source contains no
        scores or fewer than 20 rows with labels.
    """
    keys = score_row_keys(encoder, source)
    is_labelled = known.any(axis=1)
    if keys is None or is_labelled.sum() < MIN_RECORD_IMAGES:
        return None
    logits = cross_fitted_logits(
        run.entry("calibrator"),
        raw,
        targets,
        known,
        vectors=vectors,
        folds=RECORD_FOLDS,
        seed=run.seed,
    )
    logits = tree.logits(logits) if tree else logits
    return CrossFittedScoreRows(keys[is_labelled], logits[is_labelled].astype(np.float32))


def score_row_keys(encoder: Encoder, source: object) -> npt.NDArray[np.uint64] | None:
    """Return a hash of the file name and the scores of each row, ``(n,)``.

    The hash does not depend on the folder of an image. If the encoder is not ``scores:KIND``, or if
    the source contains no scores, the result is None.
    """
    if not isinstance(encoder, PrecomputedScores) or not isinstance(source, LabelledFeatures):
        return None
    rows = np.ascontiguousarray(precomputed_vectors(encoder, source))
    digests = [
        hashlib.blake2b(
            os.path.basename(path).encode("utf-8", "replace") + row.tobytes(), digest_size=8
        )
        for path, row in zip(source.paths, rows, strict=True)
    ]
    return np.array([int.from_bytes(digest.digest(), "little") for digest in digests], np.uint64)


def needs_log_odds_of_cosines(encoder: Encoder, method: Method) -> bool:
    """Return whether the scores of a recognizer are cosines without a fitted slope and shift."""
    is_unfitted = isinstance(encoder, PrecomputedScores) and encoder.level is None
    return is_unfitted and method.learns_from == "nothing"


def encoder_with_log_odds_of_cosines(
    encoder: Encoder, cosines: npt.NDArray[np.floating], targets: Array, known: Flags
) -> Encoder:
    """Return the encoder of cosines with a slope and a shift that all labels share.

    The slope and the shift are fitted by Platt scaling, before a calibrator with parameters per
    label.

    Args:
        encoder: Encoder ``scores:cosines``.
        cosines: Cosines of n images and c labels, ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Raises:
        InputError: If no known target is positive, or no known target is negative.
    """
    assert isinstance(encoder, PrecomputedScores)
    line = CALIBRATORS["platt"]().fit(cosines, targets, known).state()
    return encoder.with_log_odds(float(line["slope"]), float(line["shift"]))


def check_labelled_score_rows(encoder: Encoder, names: Sequence[str], known: Flags) -> None:
    """Check that enough rows of precomputed scores have labels for a calibration.

    Args:
        encoder: Encoder of the recognizer. Encoders other than ``scores:KIND`` are not checked.
        names: Labels, length c.
        known: True where the target is known, ``(n, c)``.

    Raises:
        InputError: If fewer than 20 rows have a known target.
    """
    n_rows = int(known.any(axis=1).sum())
    if isinstance(encoder, PrecomputedScores) and n_rows < MIN_RECORD_IMAGES:
        raise InputError(
            f"A calibration of scores requires at least {MIN_RECORD_IMAGES} images with known "
            f"targets; got {n_rows} for {format_count(len(names), 'label')}. Annotate more images; "
            "reliable probabilities require several hundred images."
        )
