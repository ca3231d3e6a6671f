"""Accept new images with a bound on the expected share of false claims (conformal selection).

A claim about an image is true or false, such as "the predicted target is right" or "the image
matches the query". For calibration images, it is known whether the claim is true. New images whose
claims have a high confidence are accepted, such that the expected share of false claims among the
accepted images is bounded.

Guarantee: if the new images and the calibration images are exchangeable, such as a random sample of
one collection, the expected share of false claims among the accepted images is at most the level.
The share is 0 if no image is accepted. The expectation is over the samples of calibration images
and of new images. There is no guarantee for a single image or a single sample.

Proof sketch. Let V be the confidence of an image whose claim is false, and minus infinity if the
claim is true. Calibration and new images have exchangeable V. If the claim of the new image j is
false, its p-value is the rank of V_j among V_j and the V of the n calibration images, divided by
n + 1, so that P(claim j is false, p_j <= t) <= t. This inequality also holds if the set of the
n + 1 values is given. Let q_k be the p-value of another new image k, computed from this set. If the
confidence of k is at most V_j, q_k = p_k; otherwise q_k <= p_k <= p_j. If Benjamini-Hochberg
accepts j, it accepts every k with p_k <= p_j. The number R of accepted images therefore remains the
same if p_j is replaced by 0 and each p_k by q_k. This number R_j depends on the set, but not on the
rank of V_j. The expected share of false claims is the sum over j of the expectation of 1{j is
false, p_j <= level · R_j / m} / R_j, which is at most level / m for each of m new images. The proof
holds if the confidences and the claims of the n + m images are given without their order. Therefore
a rule may be selected from the confidences of all images together, as in :mod:`claim_selection`.
The claims may be dependent. Images with true claims are counted in n, so the p-values depend on the
share of true claims.
"""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.decisions.input_validation import check_decision_setting_fraction
from surelabel.errors import InputError
from surelabel.shapes import check_shapes

ROUNDING = 1e-12  # rounding error of products of levels and ranks


def conformal_p_values(
    confidences: npt.ArrayLike, calibration: npt.ArrayLike, is_false: npt.ArrayLike
) -> Array:
    """Return the conformal p-values of the hypotheses that the claims of new images are false.

        p_j = (1 + number of calibration images with a false claim and confidence >= c_j) / (n + 1)

    Here c_j is the confidence of new image j. Calibration images with a true claim count in n only.
    Equal confidences increase the p-value.

    Args:
        confidences: Confidence of m new images, ``(m,)``, in any unit. A higher value means a more
            confident claim.
        calibration: Confidence of n calibration images, ``(n,)``, computed in the same way.
        is_false: True for calibration images whose claim is false, ``(n,)``.

    Returns:
        p-values in [1 / (n + 1), 1], ``(m,)``. Without a calibration image, all p-values are 1.

    Raises:
        InputError: If the shapes do not match, or if a confidence is not finite.

    Source:
        Jin and Candès, Selection by Prediction with Conformal p-values, Journal of Machine Learning
        Research 24, 2023, arXiv:2210.01408. For labelling: arXiv:2510.14581. For search:
        arXiv:2510.08075.

    Differs:
        The code of the papers was not used. Ties increase the p-values and are not broken at
        random.

    Example:
        >>> conformal_p_values([0.9, 0.5], [0.8, 0.6, 0.4], [False, True, True])
        array([0.25, 0.5 ])
    """
    values, reference = np.asarray(confidences, np.float64), np.asarray(calibration, np.float64)
    false_claims = np.asarray(is_false, dtype=bool)
    check_shapes(
        confidences=(values, "m"), calibration=(reference, "n"), is_false=(false_claims, "n")
    )
    if not (np.isfinite(values).all() and np.isfinite(reference).all()):
        raise InputError(
            "Confidences must be finite numbers; got NaN or infinite values. Remove the claims "
            "with these values."
        )
    sorted_false = np.sort(reference[false_claims])
    n_above = len(sorted_false) - np.searchsorted(sorted_false, values, side="left")
    p_values: Array = (1 + n_above) / (len(reference) + 1)
    return p_values


def benjamini_hochberg(p_values: npt.ArrayLike, *, level: float = 0.05) -> Flags:
    """Return the mask of the hypotheses that Benjamini and Hochberg's procedure rejects, ``(m,)``.

    R hypotheses are rejected, for the largest R such that R p-values are at most level · R / m.

    Args:
        p_values: p-values in [0, 1], ``(m,)``. They must be independent, or the conformal p-values
            of one set of calibration images.
        level: Bound of the expected share of false rejections, in (0, 1).

    Raises:
        InputError: If a p-value is outside [0, 1], or the array does not have one axis.
        ConfigError: If ``level`` is outside (0, 1).

    Source:
        Benjamini and Hochberg, Controlling the False Discovery Rate, Journal of the Royal
        Statistical Society B 57, 1995.

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.9], level=0.1)
        array([ True,  True,  True, False])
    """
    check_decision_setting_fraction("level", level)
    values = np.asarray(p_values, np.float64)
    check_shapes(p_values=(values, "m"))
    if not ((values >= 0) & (values <= 1)).all():  # False for NaN
        raise InputError(
            f"p-values must be in [0, 1]; got values from {values.min():g} to {values.max():g}. "
            "Compute the p-values again."
        )
    n = len(values)
    ranks = np.arange(1, n + 1)
    is_below = np.sort(values) <= level * ranks / max(n, 1) + ROUNDING
    n_rejected = int(ranks[is_below].max(initial=0))
    rejected: Flags = values <= level * n_rejected / max(n, 1) + ROUNDING
    return rejected if n_rejected else np.zeros(n, dtype=bool)


def benjamini_yekutieli(p_values: npt.ArrayLike, *, level: float = 0.05) -> Flags:
    """Return the mask of the hypotheses that Benjamini and Yekutieli's procedure rejects, ``(m,)``.

    The level of Benjamini and Hochberg is divided by 1 + 1/2 + ... + 1/m. The bound then holds for
    every dependence of the p-values, such as p-values of different labels of the same images.

    Args:
        p_values: p-values in [0, 1], ``(m,)``. Their number m must not depend on the images.
        level: Bound of the expected share of false rejections, in (0, 1).

    Raises:
        InputError: If a p-value is outside [0, 1], or the array does not have one axis.
        ConfigError: If ``level`` is outside (0, 1).

    Source:
        Benjamini and Yekutieli, The Control of the False Discovery Rate in Multiple Testing under
        Dependency, Annals of Statistics 29, 2001.

    Example:
        >>> benjamini_yekutieli([0.01, 0.04, 0.03, 0.9], level=0.1)
        array([ True, False, False, False])
    """
    check_decision_setting_fraction("level", level)
    n = np.asarray(p_values).size
    return benjamini_hochberg(
        p_values, level=level / float(np.sum(1 / np.arange(1, max(n, 1) + 1)))
    )
