"""Normalize precomputed vectors: standardize or scale to unit length, or return them unchanged."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.errors import ConfigError, InputError
from surelabel.mapped_arrays import mapped_zeros, row_blocks, to_mapped_array

NORMALIZATIONS = ("auto", "standardize", "unit", "none")
UNIT_TOLERANCE = 0.01  # tolerance of the length; rounding to 16 bits changes the length by less
STANDARD_SCORE_LIMIT = 10_000.0  # larger standard scores are clipped
ROWS_PER_BLOCK = 4096  # rows that are converted to double precision at once


@dataclass(frozen=True, eq=False)
class VectorNormalization:
    """Normalization of vectors of width d, fitted on training vectors.

    Attributes:
        kind: One of three kinds:

            - ``standardize``: subtract the mean of each column, divide by its standard deviation
              and by sqrt(d). Columns that are constant in training are 0. If no column is
              constant, the mean squared length of the training vectors is then 1, as for unit
              vectors.
            - ``unit``: divide each vector by its length.
            - ``none``: return the vectors unchanged.
        mean: Mean of each column of the training vectors, ``(d,)``, for ``standardize`` only.
        deviation: Standard deviation of each column of the training vectors, 0 for constant
            columns, ``(d,)``, for ``standardize`` only.
        n_vectors: Number of training vectors of the statistics, for ``standardize`` only.
    """

    kind: str
    mean: Array | None = None
    deviation: Array | None = None
    n_vectors: int = 0

    def normalize(self, vectors: npt.NDArray[np.floating]) -> Tensor:
        """Return the normalized vectors in single precision, ``(n, d)``.

        Standard scores, which are deviations from the mean in standard deviations, are clipped to
        [-10,000, 10,000].

        Args:
            vectors: Finite vectors, ``(n, d)``.

        Raises:
            InputError: If the kind is ``unit``, and all values of a row are 0.
        """
        if self.mean is not None and self.deviation is not None:
            return _standardize(vectors, self.mean, self.deviation)
        if self.kind == "unit":
            return _scale_to_unit_length(vectors)
        return torch.from_numpy(to_mapped_array(np.array(vectors, dtype=np.float32)))

    @property
    def description(self) -> str:
        """Return a description of the normalization for messages, such as ``not normalized``."""
        if self.deviation is None:
            return "scaled to unit length" if self.kind == "unit" else "not normalized"
        n_constant = int((self.deviation == 0).sum())
        constant = f", {n_constant:,} of {format_count(len(self.deviation), 'column')} constant"
        return (
            f"standardized by the statistics of {self.n_vectors:,} training vectors"
            f"{constant if n_constant else ''}"
        )


UNIT_LENGTH = VectorNormalization("unit")


def fit_vector_normalization(
    vectors: npt.NDArray[np.floating], normalize: str = "auto"
) -> VectorNormalization:
    """Return a normalization with the statistics of training vectors.

    Args:
        vectors: Finite training vectors, ``(n, d)``, n >= 1.
        normalize: Kind of the normalization. ``auto`` is ``unit`` if the length of each training
            vector is between 0.99 and 1.01, and otherwise ``standardize``.

    Raises:
        ConfigError: If ``normalize`` is unknown.
        InputError: If the vectors are to be standardized, and there is only one vector.

    Example:
        >>> normalization = fit_vector_normalization(np.array([[1.0, 5.0], [3.0, 5.0]]))
        >>> normalization.mean, normalization.deviation
        (array([2., 5.]), array([1., 0.]))
    """
    check_normalization_name(normalize)
    if normalize == "auto":
        normalize = "unit" if has_unit_length(vectors) else "standardize"
    if normalize != "standardize":
        return VectorNormalization(normalize)
    n_vectors = len(vectors)
    if n_vectors < 2:
        raise InputError(
            f"Standardization requires at least 2 training vectors; got {n_vectors}. Give more "
            "vectors, or set encoder.normalize=unit."
        )
    mean = vectors.mean(axis=0, dtype=np.float64)
    squares = np.zeros_like(mean)
    for block in _blocks_in_double_precision(vectors):
        squares += ((block - mean) ** 2).sum(axis=0)
    is_constant = vectors.min(axis=0) == vectors.max(axis=0)
    deviation = np.where(is_constant, 0.0, np.sqrt(squares / n_vectors))
    return VectorNormalization("standardize", mean, deviation, n_vectors)


def check_normalization_name(normalize: object) -> None:
    """Check that a normalization exists.

    Raises:
        ConfigError: If ``normalize`` is not one of ``NORMALIZATIONS``.
    """
    if normalize not in NORMALIZATIONS:
        raise ConfigError(
            f"encoder.normalize must be one of {', '.join(NORMALIZATIONS)}; got {normalize!r}. "
            "Use one of these values."
        )


def has_unit_length(vectors: npt.NDArray[np.floating]) -> bool:
    """Return True if the length of each vector is between 0.99 and 1.01.

    Args:
        vectors: Finite vectors, ``(n, d)``.
    """
    return all(
        bool((np.abs(np.linalg.norm(block, axis=1) - 1) <= UNIT_TOLERANCE).all())
        for block in _blocks_in_double_precision(vectors)
    )


def _standardize(vectors: npt.NDArray[np.floating], mean: Array, deviation: Array) -> Tensor:
    divisor = np.where(deviation > 0, deviation, np.inf)  # constant columns become 0
    standardized = mapped_zeros(vectors.shape, np.float32)
    for number, block in enumerate(_blocks_in_double_precision(vectors)):
        scores = ((block - mean) / divisor).clip(-STANDARD_SCORE_LIMIT, STANDARD_SCORE_LIMIT)
        rows = slice(number * ROWS_PER_BLOCK, (number + 1) * ROWS_PER_BLOCK)
        standardized[rows] = scores / math.sqrt(len(mean))
    return torch.from_numpy(standardized)


def _scale_to_unit_length(vectors: npt.NDArray[np.floating]) -> Tensor:
    zero_rows = np.flatnonzero(~vectors.any(axis=1))
    if zero_rows.size:
        raise InputError(
            f"features must not contain rows of zeros; got {zero_rows.size} such rows (first: row "
            f"{zero_rows[0]}). Remove these rows, or fit with encoder.normalize=standardize "
            "(features:WIDTH only)."
        )
    unit_vectors = mapped_zeros(vectors.shape, np.float32)
    for rows in row_blocks(vectors):
        block = vectors[rows]
        largest = np.abs(block).max(
            axis=1, keepdims=True
        )  # prevents under- and overflow of squares
        scaled = torch.from_numpy(np.asarray(block / largest, dtype=np.float32))
        unit_vectors[rows] = F.normalize(scaled, dim=-1).numpy()
    return torch.from_numpy(unit_vectors)


def _blocks_in_double_precision(vectors: npt.NDArray[np.floating]) -> Iterator[Array]:
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        yield vectors[start : start + ROWS_PER_BLOCK].astype(np.float64)
