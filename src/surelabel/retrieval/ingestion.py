"""Validate predictions, and convert predictions to index rows."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surelabel.arrays import LOGIT_LIMIT
from surelabel.errors import InputError, NotFitted
from surelabel.records import Predictions
from surelabel.retrieval.file_state import (
    absolute_file_state_paths,
    file_state_table,
    replace_file_state_paths,
)
from surelabel.retrieval.index_manifest import IndexManifest
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.shard_rows import ShardRows


def empty_manifest_for_ingestion(predictions: Predictions, root: str) -> IndexManifest:
    """Return the manifest of a new, empty index for the given predictions.

    Args:
        predictions: Predictions of the images.
        root: Absolute path of the folder that contains images with a relative stored path.

    Raises:
        NotFitted: If the predictions are not calibrated.
        InputError: If there is no label name, or a name is empty or occurs twice.
    """
    if predictions.logits is None or predictions.calibration is None:
        raise NotFitted(
            "An index needs calibrated log-odds to combine several labels; these predictions are "
            "not calibrated. Calibrate the recognizer (`surelabel calibrate`) and predict again."
        )
    names = tuple(predictions.names)
    check_label_names_for_ingestion(names)
    engines = () if predictions.engine is None else (predictions.engine,)
    return IndexManifest(names, predictions.model, predictions.calibration, root, engines=engines)


def check_label_names_for_ingestion(names: Sequence[str]) -> None:
    """Check that label names can be the names of an index.

    Raises:
        InputError: If there is no label name, or a name is empty or occurs twice.
    """
    if not names:
        raise InputError(
            "An index needs at least one label; got no label name. Predict at least one label."
        )
    if not all(names) or len(set(names)) < len(names):
        invalid_names = [name for name in names if not name or names.count(name) > 1]
        raise InputError(
            f"Label names of an index must be distinct and not empty; got "
            f"{_abbreviate_ingestion_value(invalid_names)}. Rename these labels."
        )


def check_values_for_ingestion(
    logits: npt.NDArray[np.float32],
    scores: npt.NDArray[np.float32],
    paths: Sequence[str],
    names: Sequence[str],
) -> None:
    """Check the log-odds and raw scores of n images and c labels.

    Args:
        logits: Log-odds, ``(n, c)``.
        scores: Raw scores, ``(n, c)``.
        paths: Paths of the images, length n.
        names: Label names, length c.

    Raises:
        InputError: If a logit is outside [-40, 40], or a score is not finite.
    """
    is_valid = (np.abs(logits) <= LOGIT_LIMIT) & np.isfinite(scores)  # NaN compares as False
    if not is_valid.all():
        row, column = np.argwhere(~is_valid)[0]
        raise InputError(
            f"Log-odds must be in [-{LOGIT_LIMIT:g}, {LOGIT_LIMIT:g}] and scores must be finite; "
            f"{paths[row]!r} has log-odds {logits[row, column]} and score {scores[row, column]} "
            f"for label {names[column]!r}. Predict this image again, or leave out the image."
        )


def predictions_to_ingestion_rows(predictions: Predictions, root: IndexRoot) -> ShardRows:
    """Convert calibrated predictions to index rows, with the file state of each image.

    If a file changed after the prediction, only its content hash at prediction time is stored.

    Args:
        predictions: Predictions of the images.
        root: Root folder of the stored paths.

    Raises:
        InputError: If a logit is outside [-40, 40], if a score is not finite, or if a path occurs
            twice or is not valid Unicode.
    """
    logits = np.asarray(predictions.logits, dtype=np.float32)
    scores = np.asarray(predictions.scores, dtype=np.float32)
    check_values_for_ingestion(logits, scores, predictions.paths, predictions.names)
    file_states = file_state_table(predictions.paths, predictions.hashes)
    stored_paths = [root.stored_path(path) for path in file_states["path"].to_pylist()]
    file_states = replace_file_state_paths(file_states, stored_paths)
    return ShardRows.from_arrays(file_states, logits.T, scores.T, predictions.features)


def skipped_reasons_of_ingestion(predictions: Predictions) -> dict[str, str]:
    """Return the reason for each image that could not be read, by absolute path."""
    paths = absolute_file_state_paths(skipped.path for skipped in predictions.skipped)
    return dict(zip(paths, (skipped.reason for skipped in predictions.skipped), strict=True))


def check_recognizer_of_ingestion(manifest: IndexManifest, predictions: Predictions) -> None:
    """Check that predictions come from the recognizer of an index.

    Args:
        manifest: Manifest of the index.
        predictions: Predictions to add to the index.

    Raises:
        NotFitted: If the predictions are not calibrated.
        InputError: If recognizer, calibration, names or feature width differ from those of the
            index. Also if a name of the predictions is empty or occurs twice.
    """
    other = empty_manifest_for_ingestion(predictions, "")
    pairs = {
        "model fingerprint": (manifest.model, other.model),
        "calibration": (manifest.calibration, other.calibration),
        "label list": (manifest.names, other.names),
    }
    if manifest.shards and len(predictions):
        features = predictions.features
        feature_width = 0 if features is None else features.shape[1]
        pairs["feature width"] = (str(manifest.shards[0].feature_width or 0), str(feature_width))
    for quantity, (expected, actual) in pairs.items():
        if expected != actual:
            raise InputError(
                f"Predictions must have the {quantity} of the index, "
                f"{_abbreviate_ingestion_value(expected)}; got "
                f"{_abbreviate_ingestion_value(actual)}. Predict with the recognizer of the index, "
                "or build the index again (`surelabel index`)."
            )


def _abbreviate_ingestion_value(value: str | Sequence[str]) -> str:
    """Quote a string, or the first five strings of a list, followed by the length of the list."""
    if isinstance(value, str):
        return repr(value)
    return f"{', '.join(map(repr, value[:5]))}{', …' if len(value) > 5 else ''} ({len(value)})"
