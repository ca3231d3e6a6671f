"""Compute the proximity of each image to its nearest neighbours in feature space."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import validate_metric_whole_number
from surelabel.shapes import check_shapes

ROWS_PER_BLOCK = 256  # images compared at a time, to bound the memory


def neighbour_proximity(
    features: npt.ArrayLike, reference: npt.ArrayLike | None = None, *, neighbours: int = 10
) -> Array:
    """Return the proximity of each image to its nearest neighbours, which is low for outliers.

        proximity = exp(-mean distance to the nearest neighbours)

    where the distance is the Euclidean distance between feature vectors, normalized to length 1.

    Args:
        features: Nonzero feature vectors of n images, of width d, ``(n, d)``.
        reference: Nonzero feature vectors of r held-out images, ``(r, d)``. If None, each
            image is compared with the other rows of ``features``.
        neighbours: Number of nearest neighbours, >= 1. If there are fewer images to compare with,
            all of them are used.

    Returns:
        Proximity in (0, 1], ``(n,)``. If there is a single image and no reference, the value is
        NaN.

    Raises:
        InputError: If a vector is zero or not finite, the widths of ``features`` and ``reference``
            differ, or ``reference`` is empty.
        ConfigError: If ``neighbours`` is not a whole number >= 1.

    Source:
        Xiong et al., Proximity-Informed Calibration for Deep Neural Networks, NeurIPS 2023,
        arXiv:2306.04590.

    Differs:
        The released script of Xiong et al. averages exp(-squared distance) over the neighbours. The
        paper and this function use the formula above. The groups of ``piece`` depend only on the
        order of the proximities, which is almost equal for both formulas.

    Example:
        >>> neighbour_proximity([[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 1.0]], neighbours=1)
        array([1., 1.])
        >>> neighbour_proximity([[1.0, 0.0], [0.0, 2.0]]).round(4)
        array([0.2431, 0.2431])
    """
    n_neighbours = validate_metric_whole_number("neighbours", neighbours)
    proximities = [np.empty(0)]
    for cosines in neighbour_proximity_cosine_blocks(features, reference):
        n_nearest = min(n_neighbours, cosines.shape[1])
        nearest = np.partition(cosines, -n_nearest, axis=1)[:, -n_nearest:]
        distances = np.sqrt(np.maximum(2 - 2 * nearest, 0))
        is_other = nearest > -np.inf
        total = np.where(is_other, distances, 0).sum(axis=1)
        n_others = np.where(is_other.any(axis=1), is_other.sum(axis=1), np.nan)
        proximities.append(np.exp(-total / n_others))
    return np.concatenate(proximities)


def neighbour_proximity_cosine_blocks(
    features: npt.ArrayLike, reference: npt.ArrayLike | None = None
) -> Iterator[Array]:
    """Yield blocks of rows of the cosine similarities of features and reference, ``(rows, r)``.

    Args:
        features: Nonzero feature vectors of n images, of width d, ``(n, d)``.
        reference: Nonzero feature vectors of r images to compare with, ``(r, d)``. If None,
            ``features`` are compared with each other, and the similarity of an image with itself is
            -inf.

    Raises:
        InputError: When the first block is requested, if a vector is zero or not finite, the widths
            of ``features`` and ``reference`` differ, or ``reference`` is empty.
    """
    queries = normalize_for_neighbour_proximity("features", features)
    references = (
        queries if reference is None else normalize_for_neighbour_proximity("reference", reference)
    )
    check_shapes(features=(queries, "n d"), reference=(references, "r d"))
    if not len(references) and reference is not None:
        raise InputError(
            "reference must have at least one vector; got none. Omit reference to compare "
            "the features with each other."
        )
    for start in range(0, len(queries), ROWS_PER_BLOCK):
        cosines = queries[start : start + ROWS_PER_BLOCK] @ references.T
        if reference is None:
            row = np.arange(len(cosines))
            cosines[row, start + row] = -np.inf
        yield cosines


def normalize_for_neighbour_proximity(name: str, vectors: npt.ArrayLike) -> Array:
    """Return the vectors, normalized to length 1, ``(n, d)``.

    Args:
        name: Name of the argument, for the error message.
        vectors: n nonzero vectors of width d, ``(n, d)``.

    Raises:
        InputError: If ``vectors`` does not have two axes, or a vector is zero or not finite.
    """
    array = np.asarray(vectors, dtype=np.float64)
    check_shapes(**{name: (array, "n d")})
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    invalid = ~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0))
    if invalid.any():
        raise InputError(
            f"{name} must be finite and nonzero vectors; got "
            f"{format_count(invalid.sum(), 'invalid vector')}, the first in row "
            f"{invalid.argmax()}. Remove the rows with invalid vectors."
        )
    return np.asarray(array / lengths)
