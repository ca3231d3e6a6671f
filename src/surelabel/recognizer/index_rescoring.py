"""Compute log-odds of indexed images for a new calibration or other labels, without encoding."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from surelabel.arrays import LOGIT_LIMIT
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.progress import Progress
from surelabel.recognizer.index_calibration import (
    check_index_calibration,
    recognizer_record_of_index,
)
from surelabel.recognizer.model_resolution import absolute_model_name
from surelabel.recognizer.prediction_blocks import compute_image_scores
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Features
from surelabel.retrieval import Index, IndexRecognizer
from surelabel.retrieval.index_rescoring import IndexScoring


def rescore_index(
    folder: str | Path,
    recognizer: Recognizer,
    *,
    model: str | None = None,
    root: str | Path | None = None,
    expected_model: str | None = None,
    progress: Progress | None = None,
) -> Index:
    """Compute labels and log-odds of an index again, from the image vectors that it stores.

    No image is read or encoded. The vectors are stored in fp16, so log-odds differ slightly from
    those of encoding the images again. Without image vectors, a new calibration of the same scores
    is applied to the raw scores of the index, if they are stored. If the process is killed, the
    index is unchanged or complete.

    Args:
        folder: Folder of the index.
        recognizer: Calibrated recognizer with the encoder of the index. Labels, method and
            calibration may differ from those of the index.
        model: Name of the recognizer, as for ``resolve_model``, which the index records. If None,
            the recorded name is kept.
        root: New root folder of the images, which the index then stores, if the images were moved.
            If None, the stored root is kept.
        expected_model: Fingerprint of the recognizer whose log-odds are replaced. If None, the
            recognizer of the index is not checked.
        progress: Function called with the number of rescored images and the total number of images.

    Returns:
        The index after the change.

    Raises:
        NotFitted: If the recognizer is not calibrated or not fitted.
        ConfigError: If the method needs more than the vector of each image.
        InputError: If the index has neither image vectors nor raw scores, does not record its
            encoder, or was built with another encoder. Also if the width of the image vectors
            differs from that of the encoder. Without image vectors, also if labels, method or
            weights of the recognizer differ from those of the index.
        DataError: If the index is damaged, cannot be written, or is being written by another
            process. Also if the recognizer of the index is not ``expected_model``.
    """
    recognizer.check_fitted()
    check_rescoring_method(recognizer)
    check_index_calibration(recognizer)
    index = Index.open(folder, root=root)
    if expected_model not in (None, index.model):
        raise DataError(
            f"{folder} must have the log-odds of the recognizer {expected_model}; another process "
            f"replaced them by those of {index.model}. Repeat the operation with the new index."
        )
    recorded = index.recognizer
    if recorded is None or recorded.encoder is None:
        raise InputError(
            f"New scores require image vectors of a known encoder; {folder} does not record its "
            "encoder. Run `surelabel index` once with the images and --model of the index."
        )
    if recorded.encoder != recognizer.encoder.fingerprint:
        raise InputError(
            f"The image vectors of {folder} come from the encoder of {recorded.model} "
            f"({recorded.encoder}); got {recognizer.encoder.name} "
            f"({recognizer.encoder.fingerprint}). Give a recognizer with the same encoder, or "
            "build the index again."
        )
    name = recorded.model if model is None else absolute_model_name(model)
    record = replace(recognizer_record_of_index(recognizer, name), encoder=recorded.encoder)
    n_images, n_done = len(index), 0

    def score(
        vectors: npt.NDArray[np.float16],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        nonlocal n_done
        _check_vector_width(index, recognizer, vectors.shape[1])
        logits, scores = score_index_vectors(recognizer, vectors)
        n_done += len(vectors)
        if progress:
            progress(n_done, n_images)
        return logits, scores

    calibrate = None
    if len(index) and index.vector_width is None:
        _check_raw_scores(index, recorded, record)
        calibrate = partial(calibrated_index_scores, recognizer)
    calibration = recognizer.calibrated_on
    assert calibration is not None  # checked above
    index.rescore(
        IndexScoring(
            recognizer.names, recognizer.fingerprint, calibration, score, calibrate, record
        )
    )
    return index


def check_rescoring_method(recognizer: Recognizer) -> None:
    """Check that a method computes scores from the vectors of images.

    Raises:
        ConfigError: If the method needs views, patches or other features.
    """
    needs = [need for need in recognizer.method.needs if need != "pixels"]
    if needs:
        raise ConfigError(
            f"An index stores one vector for each image; {recognizer.run.method.name} also needs "
            f"{', '.join(needs)}. Build the index again (`surelabel index`)."
        )


def score_index_vectors(
    recognizer: Recognizer, vectors: npt.NDArray[np.float16]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the log-odds and the raw scores of images, both ``(n, c)``.

    Args:
        recognizer: Calibrated recognizer.
        vectors: Image vectors of its encoder, ``(n, d)``.
    """
    pooled = torch.from_numpy(vectors.astype(np.float32))
    features = Features(pooled.to(recognizer.encoder.device))
    scores = compute_image_scores(recognizer.method, features)
    return calibrated_index_scores(recognizer, scores, vectors), scores


def calibrated_index_scores(
    recognizer: Recognizer,
    scores: npt.NDArray[np.float32],
    vectors: npt.NDArray[np.float16] | None = None,
) -> npt.NDArray[np.float32]:
    """Return the log-odds of raw scores, ``(n, c)``.

    Args:
        recognizer: Calibrated recognizer.
        scores: Raw scores of its method, ``(n, c)``.
        vectors: Image vectors, ``(n, d)``. If None, the image vectors are unknown.

    Raises:
        ConfigError: If the calibrator needs image vectors, and ``vectors`` is None.
    """
    raw, calibration = recognizer.logits_of(scores), recognizer.calibration
    if calibration is None:
        return raw.clip(-LOGIT_LIMIT, LOGIT_LIMIT).astype(np.float32)
    return calibration.logits(raw, vectors).astype(np.float32)


def _check_vector_width(index: Index, recognizer: Recognizer, width: int) -> None:
    """Check that the image vectors of an index have the width of those of the encoder.

    Raises:
        InputError: If the widths differ.
    """
    if width != recognizer.encoder.width:
        raise InputError(
            f"The image vectors of {index.folder} must have the width of "
            f"{recognizer.encoder.name}, {recognizer.encoder.width}; got {width}. Build the index "
            "again (`surelabel index`)."
        )


def _check_raw_scores(index: Index, recorded: IndexRecognizer, record: IndexRecognizer) -> None:
    """Check that a recognizer computes the raw scores that an index stores.

    Raises:
        InputError: If labels, method or weights differ.
    """
    if recorded.scores is None or recorded.scores != record.scores:
        raise InputError(
            f"{index.folder} contains no image vectors. Therefore, the recognizer must have the "
            "labels, the method and the weights of the index; got a different recognizer. Build "
            "the index again (`surelabel index`)."
        )
