"""Log loss in nats, from probabilities or from logits."""

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.metrics.blocks import blocks
from surelabel.metrics.checked import checked_probabilities
from surelabel.metrics.ratio import ratio
from surelabel.records import LOGIT_LIMIT, Array, Flags, checked_targets
from surelabel.shapes import check_shapes


def log_loss(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """Mean surprise in nats over all known decisions.

        L = mean of  -y · log(p) - (1 - y) · log(1 - p),   no logarithm below -40

    Args:
        probabilities: In [0, 1], ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.

    Returns:
        Nats a decision, in [0, 40], 0 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, or something is NaN or outside [0, 1].

    Source:
        Good, Rational Decisions, Journal of the Royal Statistical Society B, 1952.

    Differs:
        A probability of exactly 0 or 1 stands for a logit of -40 or 40, where all logits end, so
        a certain mistake costs 40 nats; scikit-learn stops at 36.04.

    Example:
        >>> round(log_loss([[0.5, 0.25]], [[1, 0]]), 4)
        0.4904
    """
    loss, count = _sums(probabilities, targets, known)
    return float(ratio(loss.sum(), count.sum()))


def log_loss_per_class(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> Array:
    """``log_loss`` of every class, ``(c,)``; NaN for a class of which nothing is known.

    Source:
        As ``log_loss``, class by class.
    """
    return ratio(*_sums(probabilities, targets, known))


def log_loss_of_logits(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> float:
    """``log_loss`` of the sigmoid of logits, exact where that sigmoid rounds to 0 or 1.

        L = mean of  log(1 + exp(z)) - y · z

    Args:
        logits: Finite log-odds, ``(n, c)``.
        targets: As for ``log_loss``.
        known: As for ``log_loss``.

    Returns:
        Nats a decision, 0 is best; NaN when nothing is known.

    Raises:
        InputError: shapes differ, a logit is not finite, or a target is outside [0, 1].

    Source:
        As ``log_loss``.

    Example:
        >>> round(log_loss_of_logits([[0.0, 40.0]], [[1, 0]]), 4)
        20.3466
    """
    z = np.asarray(logits, dtype=np.float64)
    y, known = checked_targets(targets, known)
    check_shapes(logits=(z, "n c"), targets=(y, "n c"))
    if not np.isfinite(z).all():
        raise InputError(
            f"logits must be finite. Got {(~np.isfinite(z)).sum()} that are not; "
            f"a link or a calibrator gives logits in [-40, 40]."
        )
    loss = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z
    return float(ratio(loss[known].sum(), known.sum()))


def _sums(
    probabilities: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None
) -> tuple[Array, Array]:
    """Of each class ``(c,)``: the losses together, and how many decisions are known."""
    p, y, known = checked_probabilities(probabilities, targets, known)
    loss = np.zeros(p.shape[1])
    for block in blocks(p, y, known):
        loss += _losses(*block).sum(axis=0)
    return loss, known.sum(axis=0, dtype=float)


def _losses(p: Array, y: Array, known: Flags) -> Array:
    """The loss of every decision, 0 where unknown, ``(n, c)``."""
    with np.errstate(divide="ignore"):  # log 0 is raised to -40 below
        log_p, log_not_p = np.log(p), np.log1p(-p)
    log_p, log_not_p = (np.maximum(log, -LOGIT_LIMIT, out=log) for log in (log_p, log_not_p))
    log_p -= log_not_p
    log_p *= y
    log_p += log_not_p
    loss = np.negative(log_p, out=log_p)
    if not known.all():
        loss *= known
    return loss
