"""Compute the mean average precision (mAP) over images."""

import numpy.typing as npt

from surelabel.metrics.arrays.nan_division import mean_ignoring_nan
from surelabel.metrics.average_precision import average_precision_per_image


def mean_average_precision_per_image(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the average precision of the labels of an image, averaged over images (mAP@x).

    Args:
        scores: Finite scores of n images and c classes, ``(n, c)``. A higher score means a more
            likely label.
        targets: Targets, 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Mean average precision in [0, 1] over the images with a known positive, where 1 is best. If
        no positive is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a score is not finite, a known
            target is neither 0 nor 1, or ``known`` is not Boolean.

    Source:
        mAP@x in Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks,
        CVPR 2024, section 5.1.

    Example:
        >>> mean_average_precision_per_image([[0.9, 0.3], [0.8, 0.4]], [[1, 0], [0, 1]])
        0.75
    """
    return mean_ignoring_nan(average_precision_per_image(scores, targets, known))
