"""Compute the calibration error over the nearest neighbours of each image."""

import numpy as np
import numpy.typing as npt

from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_probability_metric_inputs,
)
from surelabel.metrics.proximity.neighbour_proximity import neighbour_proximity_cosine_blocks
from surelabel.shapes import check_shapes

COSINE_TOLERANCE = 1e-12  # cosines that differ less are equal, as for duplicate images


def neighbourhood_calibration_error(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    features: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    neighbours: int = 10,
) -> float:
    """Return the calibration gap over the nearest neighbours of each image, averaged over images.

        mean over images i of  |accuracy(N(i)) - confidence(N(i))|

    where N(i) are the nearest neighbours of image i without image i, accuracy is the fraction of
    positives and confidence is the mean probability. Accuracy and confidence are computed over all
    known targets of the neighbours, of all labels.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        features: Nonzero feature vectors of the images, of width d, ``(n, d)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        neighbours: Number of nearest neighbours by cosine similarity, >= 1. If there are fewer
            other images, all other images are used. All images that tie for the last rank are
            included. Images without a known target are left out.

    Returns:
        Calibration error in [0, 1], where 0 is best. If fewer than two images have a known
        target, the value is NaN.

    Raises:
        InputError: If the array shapes do not match, a probability is NaN or outside [0, 1], or a
            known target is outside [0, 1]. If the feature vector of an image with a known target is
            zero or not finite.
        ConfigError: If ``neighbours`` is not a whole number >= 1.

    Source:
        Zhou et al., Rethinking BCE Loss for Multi-Label Image Recognition with Fine-Tuning,
        CVPR 2026, section C of the supplement, which calls this metric PIECE. The supplement
        specifies neither the number of neighbours nor the labels. Ten neighbours and all labels are
        our choice.

    Example:
        >>> features = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> p, y = [[0.5], [0.5], [0.5], [0.5]], [[1], [1], [0], [0]]
        >>> round(neighbourhood_calibration_error(p, y, features, neighbours=1), 4)
        0.5
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    n_neighbours = validate_metric_whole_number("neighbours", neighbours)
    vectors = np.asarray(features, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), features=(vectors, "n d"))
    has_known = known.any(axis=1)
    excess = np.where(known, p - y, 0).sum(axis=1)[has_known]
    n_known = known.sum(axis=1)[has_known].astype(float)
    n_nearest = min(n_neighbours, len(excess) - 1)
    if n_nearest < 1:
        return float("nan")
    gaps = []
    for cosines in neighbour_proximity_cosine_blocks(vectors[has_known]):
        last_cosine = np.partition(cosines, -n_nearest, axis=1)[:, [-n_nearest]]
        is_neighbour = cosines >= last_cosine - COSINE_TOLERANCE
        gaps.append(np.abs(is_neighbour @ excess) / (is_neighbour @ n_known))
    return float(np.concatenate(gaps).mean())
