"""Proximity-informed expected calibration error (PIECE).

A model may be overconfident on outliers and underconfident on typical images. Both errors cancel
in a bin of probabilities alone; PIECE also bins by proximity, so it shows them.
"""

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import (
    validate_probabilities,
    validate_whole_number,
)
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.binning.equal_mass_bins import assign_equal_mass_bins
from surelabel.metrics.binning.reliability_bins import reliability_bins
from surelabel.shapes import check_shapes


def piece(
    probabilities: npt.ArrayLike,
    targets: npt.ArrayLike,
    proximity: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    bins: int = 10,
    groups: int = 10,
) -> float:
    """Return the expected calibration error over cells of proximity and probability.

        PIECE = Σ_g Σ_b  n_gb / n · |accuracy_gb - confidence_gb|

    It is never below ``ece`` with the same bins. Smaller cells have more sampling noise; compare
    it with its noise floor:
    ``noise_floor(lambda p, y, known: piece(p, y, proximity, known), probabilities)``.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, NaN = unknown, ``(n, c)``.
        proximity: Result of ``neighbour_proximity``, or any other finite number per image,
            ``(n,)``.
        known: True where the target is known, ``(n, c)``. By default, all targets except NaN.
        bins: Number of equal-width bins on [0, 1], >= 1; the last bin includes 1.
        groups: Number of groups of images with about equal size, by proximity, >= 1. Images of
            equal proximity share a group.

    Returns:
        Calibration error in [0, 1], 0 is best; NaN if no target is known.

    Raises:
        InputError: If the shapes differ, a probability is NaN or outside [0, 1], a known target
            is outside [0, 1], or a proximity is not finite.
        ConfigError: If ``bins`` or ``groups`` is not a whole number >= 1.

    Source:
        Xiong et al., Proximity-Informed Calibration for Deep Neural Networks, NeurIPS 2023,
        arXiv:2306.04590; extended to several labels per image.

    Example:
        >>> round(piece([[0.5], [0.5]], [[0], [1]], [0.2, 0.9], groups=2), 4)
        0.5
    """
    p, y, known = validate_probabilities(probabilities, targets, known)
    proximity = np.asarray(proximity, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), proximity=(proximity, "n"))
    if not np.isfinite(proximity).all():
        raise InputError(
            f"proximity must be finite; got {(~np.isfinite(proximity)).sum()} values that are not. "
            f"Remove those images."
        )
    bins, groups = validate_whole_number("bins", bins), validate_whole_number("groups", groups)
    has_known = known.any(axis=1)
    p, y, known, proximity = p[has_known], y[has_known], known[has_known], proximity[has_known]
    group = assign_equal_mass_bins(proximity, groups)
    weighted_gaps = 0.0
    for rows in (group == g for g in np.unique(group)):
        cells = reliability_bins(p[rows], y[rows], known[rows], bins=bins)
        weighted_gaps += float(np.nansum(cells.counts * cells.gaps))
    return float(divide_or_nan(weighted_gaps, known.sum()))
