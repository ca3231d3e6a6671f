"""Normalize precomputed feature vectors, which replace image files."""

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.encoders.image_only.vector_normalization import UNIT_LENGTH, VectorNormalization
from surelabel.errors import InputError
from surelabel.features.image_features import EncodedImages
from surelabel.records import Features


def normalize_precomputed_vectors(
    vectors: npt.NDArray[np.float32],
    *,
    width: int,
    normalization: VectorNormalization = UNIT_LENGTH,
) -> EncodedImages:
    """Normalize precomputed vectors and return them as encoded images.

    Args:
        vectors: Finite feature vectors, ``(n, d)``, n >= 1.
        width: Expected width d of the vectors.
        normalization: Normalization of the vectors. By default, vectors are scaled to unit length.

    Raises:
        InputError: If there are no rows, if the width of the vectors differs from ``width``, or if
            the vectors are scaled to unit length and all values of a row are 0.
    """
    if not len(vectors):
        raise InputError("features must have at least one row; got none.")
    if vectors.shape[1] != width:
        raise InputError(
            f"features must have {format_count(width, 'column')}, the width of this recognizer's "
            f"encoder; got {vectors.shape[1]}. Fit a new recognizer with "
            f"encoder.name=features:{vectors.shape[1]} to use these features."
        )
    pooled = normalization.normalize(vectors)
    rows, encoder_passes = np.arange(len(vectors)), np.zeros(len(vectors), dtype=np.int64)
    return EncodedImages(Features(pooled), rows, (), 0, 0.0, 0.0, (), encoder_passes)
