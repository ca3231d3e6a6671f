"""Compute the proximity-informed expected calibration error (PIECE).

A model may be overconfident on outliers and underconfident on typical images. If bins depend only
on the probability, overconfidence and underconfidence in a bin cancel. PIECE also bins by
proximity, so outliers and typical images are in different bins and their errors do not cancel.
"""

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import (
    validate_metric_whole_number,
    validate_probability_metric_inputs,
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

        PIECE = Σ_g Σ_b  n_gb / N · |accuracy_gb - confidence_gb|

    where cell gb contains the n_gb of the N known targets in proximity group g and probability bin
    b. The fraction of positives in the cell is accuracy_gb, and the mean probability in the cell is
    confidence_gb. PIECE is never below ``ece`` with the same bins. Smaller cells have more sampling
    noise, so compare PIECE with its noise floor:
    ``noise_floor(lambda p, y, known: piece(p, y, proximity, known), probabilities)``.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        proximity: Result of ``neighbour_proximity``, or any other finite number per image,
            ``(n,)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.
        bins: Number of equal-width bins on [0, 1], >= 1. The last bin includes 1.
        groups: Number of proximity groups of about equal size, >= 1. Images of equal proximity are
            in the same group. Images without a known target are left out.

    Returns:
        Calibration error in [0, 1], where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the array shapes do not match, a probability is NaN or outside [0, 1], a
            known target is outside [0, 1], or a proximity is not finite.
        ConfigError: If ``bins`` or ``groups`` is not a whole number >= 1.

    Source:
        Xiong et al., Proximity-Informed Calibration for Deep Neural Networks, NeurIPS 2023,
        arXiv:2306.04590; extended here to several labels per image.

    Example:
        >>> round(piece([[0.5], [0.5]], [[0], [1]], [0.2, 0.9], groups=2), 4)
        0.5
    """
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    proximity = np.asarray(proximity, dtype=np.float64)
    check_shapes(probabilities=(p, "n c"), proximity=(proximity, "n"))
    if not np.isfinite(proximity).all():
        raise InputError(
            "proximity must be finite; got "
            f"{format_count((~np.isfinite(proximity)).sum(), 'NaN or infinite value')}. "
            "Remove the images with these values."
        )
    bins, groups = (
        validate_metric_whole_number("bins", bins),
        validate_metric_whole_number("groups", groups),
    )
    has_known = known.any(axis=1)
    p, y, known, proximity = p[has_known], y[has_known], known[has_known], proximity[has_known]
    group = assign_equal_mass_bins(proximity, groups)
    weighted_gaps = 0.0
    for rows in (group == g for g in np.unique(group)):
        cells = reliability_bins(p[rows], y[rows], known[rows], bins=bins)
        weighted_gaps += float(np.nansum(cells.counts * cells.gaps))
    return float(divide_or_nan(weighted_gaps, known.sum()))
