"""Mean average precision (mAP) over images."""

import numpy.typing as npt

from surelabel.metrics.arrays.nan_division import mean_of_defined
from surelabel.metrics.average_precision import average_precision_per_image


def mean_average_precision_per_image(
    scores: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the mean over images of the average precision of their labels: mAP@x.

    Args:
        scores: Finite scores, a higher score means more likely, ``(n, c)``.
        targets: 1 for positive, 0 for negative, NaN for unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.

    Returns:
        Mean in [0, 1] over the images with a known positive, 1 is best; NaN if no image has one.

    Raises:
        InputError: If the shapes differ, a score is not finite, or a known target is neither 0
            nor 1.

    Source:
        mAP@x in Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks,
        CVPR 2024, section 5.1.

    Example:
        >>> mean_average_precision_per_image([[0.9, 0.3], [0.8, 0.4]], [[1, 0], [0, 1]])
        0.75
    """
    return mean_of_defined(average_precision_per_image(scores, targets, known))
