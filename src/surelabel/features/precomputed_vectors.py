"""Normalization of precomputed feature vectors, which replace image files."""

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from surelabel.errors import InputError
from surelabel.features.image_features import EncodedImages
from surelabel.records import Features


def normalize_precomputed_vectors(vectors: npt.NDArray[np.float32], *, width: int) -> EncodedImages:
    """Normalize precomputed vectors to unit length and return them as encoded images.

    Args:
        vectors: Finite feature vectors, ``(n, d)``, n >= 1.
        width: Expected width d of the vectors.

    Raises:
        InputError: If the width of the vectors differs from ``width``, if there are no rows, or if
            all values of a row are 0.
    """
    if not len(vectors):
        raise InputError("features must have at least one row; got none.")
    if vectors.shape[1] != width:
        raise InputError(
            f"features must have {width} columns, the width of this recognizer's encoder; got "
            f"{vectors.shape[1]}. Fit a new recognizer with encoder.name=features:"
            f"{vectors.shape[1]} to use these features."
        )
    zero_rows = np.flatnonzero(~vectors.any(axis=1))
    if zero_rows.size:
        raise InputError(
            f"features must not have rows of zeros; got {zero_rows.size} such rows, the first is "
            f"row {zero_rows[0]}. Remove these rows."
        )
    largest = np.abs(vectors).max(axis=1, keepdims=True)  # prevents under- and overflow of squares
    pooled = F.normalize(torch.from_numpy(np.asarray(vectors / largest, dtype=np.float32)), dim=-1)
    rows, encoder_passes = np.arange(len(vectors)), np.zeros(len(vectors), dtype=np.int64)
    return EncodedImages(Features(pooled), rows, (), 0, 0.0, 0.0, (), encoder_passes)
