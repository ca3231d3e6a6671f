"""Compute the log loss (binary cross-entropy) of probabilities or of logits, in nats."""

import numpy as np
import numpy.typing as npt

from surelabel.arrays import LOGIT_LIMIT, Array, Flags, validate_target_arrays
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.metrics.arrays.input_validation import validate_probability_metric_inputs
from surelabel.metrics.arrays.nan_division import divide_or_nan
from surelabel.metrics.arrays.row_blocks import iterate_row_blocks
from surelabel.shapes import check_shapes


def log_loss(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the mean binary cross-entropy over all known targets, in nats.

        L = mean of  -y · log(p) - (1 - y) · log(1 - p),   natural logarithms, clipped at -40

    where p is the probability and y is the target of a label.

    Args:
        probabilities: Probabilities in [0, 1] of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Log loss in [0, 40] nats, where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a probability is NaN or outside
            [0, 1], a known target is outside [0, 1], or ``known`` is not Boolean.

    Source:
        Good, Rational Decisions, Journal of the Royal Statistical Society B, 1952.

    Differs:
        A probability of exactly 0 or 1 is treated as a logit of -40 or 40, the limits of logits in
        this package. For a negative with probability 1, the loss is therefore 40 nats here and
        36.04 nats in scikit-learn.

    Example:
        >>> round(log_loss([[0.5, 0.25]], [[1, 0]]), 4)
        0.4904
    """
    losses, n_known = _sum_log_losses(probabilities, targets, known)
    return float(divide_or_nan(losses.sum(), n_known.sum()))


def log_loss_per_class(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """Return ``log_loss`` for each of the c classes, ``(c,)``.

    The value of a class without known targets is NaN.

    Source:
        See ``log_loss``, computed here for each column.
    """
    return divide_or_nan(*_sum_log_losses(probabilities, targets, known))


def log_loss_of_logits(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Return the log loss of logits, which is exact even if the sigmoid rounds to 0 or 1.

        L = mean of  log(1 + exp(z)) - y · z

    where z is the logit and y is the target of a label.

    Args:
        logits: Finite log-odds of n images and c classes, ``(n, c)``.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        known: Mask of the known targets, ``(n, c)``. If None, all targets except NaN are known.

    Returns:
        Log loss in nats, where 0 is best. If no target is known, the value is NaN.

    Raises:
        InputError: If the arrays do not have one shape ``(n, c)``, a logit is not finite, a known
            target is outside [0, 1], or ``known`` is not Boolean.

    Source:
        Good, Rational Decisions, Journal of the Royal Statistical Society B, 1952.

    Example:
        >>> round(log_loss_of_logits([[0.0, 40.0]], [[1, 0]]), 4)
        20.3466
    """
    z = np.asarray(logits, dtype=np.float64)
    y, known = validate_target_arrays(targets, known)
    check_shapes(logits=(z, "n c"), targets=(y, "n c"))
    if not np.isfinite(z).all():
        raise InputError(
            "logits must be finite; got "
            f"{format_count((~np.isfinite(z)).sum(), 'NaN or infinite value')}. Clip infinite "
            "logits to [-40, 40]; replace NaN with 0 and set known=False for the same entries."
        )
    losses = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z
    return float(divide_or_nan(losses[known].sum(), known.sum()))


def _sum_log_losses(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array]:
    """Return the summed losses and the number of known targets of each class, ``(c,)`` each."""
    p, y, known = validate_probability_metric_inputs(probabilities, targets, known)
    losses = np.zeros(p.shape[1])
    for block in iterate_row_blocks(p, y, known):
        losses += _log_loss_of_each_label(*block).sum(axis=0)
    return losses, np.count_nonzero(known, axis=0).astype(float)


def _log_loss_of_each_label(p: Array, y: Array, known: Flags) -> Array:
    """Return the binary cross-entropy of each label, 0 where unknown, ``(n, c)``."""
    with np.errstate(divide="ignore"):  # log(0) is clipped to -40 below
        log_p, log_not_p = np.log(p), np.log1p(-p)
    log_p, log_not_p = (np.maximum(log, -LOGIT_LIMIT, out=log) for log in (log_p, log_not_p))
    log_p -= log_not_p
    log_p *= y
    log_p += log_not_p
    loss = np.negative(log_p, out=log_p)
    if not known.all():
        loss *= known
    return loss
