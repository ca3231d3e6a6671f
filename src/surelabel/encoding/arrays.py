"""Ready-made vectors in the place of pictures."""

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from surelabel.encoding.pictures import Encoded
from surelabel.errors import InputError
from surelabel.records import Features


def ready_made(vectors: npt.NDArray[np.float32], *, width: int) -> Encoded:
    """Vectors ``(n, d)`` as an encoder would have given them: of unit length.

    Raises:
        InputError: they are not ``width`` long, there is none, or one has no length.
    """
    if not len(vectors):
        raise InputError("features must be one row or more. Got none.")
    if vectors.shape[1] != width:
        raise InputError(
            f"features must be {width} numbers a row, as this recognizer's encoder gives. Got "
            f"{vectors.shape[1]}; to learn from these, fit a new recognizer with "
            f"backbone.name=features:{vectors.shape[1]}."
        )
    empty = np.flatnonzero(~vectors.any(axis=1))
    if empty.size:
        raise InputError(
            f"features must not be all 0, which has no direction. Got {empty.size} such rows, "
            f"the first is row {empty[0]}; drop them."
        )
    largest = np.abs(vectors).max(axis=1, keepdims=True)  # squares of tiny or huge ones get lost
    pooled = F.normalize(torch.from_numpy(np.asarray(vectors / largest, dtype=np.float32)), dim=-1)
    rows, passes = np.arange(len(vectors)), np.zeros(len(vectors), dtype=np.int64)
    return Encoded(Features(pooled), rows, (), 0, 0.0, 0.0, (), passes)
