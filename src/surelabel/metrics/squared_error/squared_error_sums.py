"""Sum squared errors for the Brier score and the Brier skill."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.metrics.arrays.input_validation import validate_probability_metric_inputs
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.arrays.row_blocks import iterate_row_blocks


def squared_error_sums(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Sum the squared errors of the probabilities and of the prevalence, for each class.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Squared errors of the probabilities, squared errors of the class prevalence (0 if all
        known targets are equal) and number of known targets, each ``(c,)``.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    errors, target_sums, target_squares = np.zeros((3, p.shape[1]))
    n_known = np.count_nonzero(known, axis=0).astype(float)
    for block_p, block_y, block_known in iterate_row_blocks(p, y, known):
        difference = block_p - block_y
        if not block_known.all():
            difference *= block_known
        errors += np.einsum("nc,nc->c", difference, difference)
        target_squares += np.einsum("nc,nc->c", block_y, block_y)
        target_sums += block_y.sum(axis=0)
    reference = target_squares - target_sums * divide_or_nan(target_sums, n_known)
    reference[~(reference > 1e-12 * target_squares)] = 0  # rounding error of equal targets
    return errors, reference, n_known
