"""Find label errors: targets that contradict out-of-fold probabilities, ranked by kind."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.errors import InputError
from surelabel.shapes import check_shapes

MISSING_POSITIVE, WRONG_POSITIVE = "missing positive", "wrong positive"
ERROR_KINDS = (MISSING_POSITIVE, WRONG_POSITIVE)
ERROR_THRESHOLD = 0.5  # probability above which an error is more likely than a correct target
_BINS_PER_UNIT = 50  # bins per unit of log-odds, for the fit of the error rates
_STARTS = ((-3.0, -3.0), (-3.0, -8.0), (-8.0, -3.0), (-8.0, -8.0))  # log-odds of the error rates
_BOUNDS = ((-14.0, 0.0), (-14.0, 0.0), (-2.0, 3.0), (-10.0, 10.0))


@dataclass(frozen=True)
class ErrorRates:
    """Rates of label errors of all targets, estimated from probabilities.

    Attributes:
        missing: Fraction of the truly positive targets that are annotated as 0, in [0, 0.5].
        wrong: Fraction of the truly negative targets that are annotated as 1, in [0, 0.5].
    """

    missing: float
    wrong: float


@dataclass(frozen=True)
class LabelErrors:
    """Probabilities that targets are wrong, of n images and c labels.

    Attributes:
        is_positive: True where the target is positive, ``(n, c)``.
        known: True where the target is known and 0 or 1, ``(n, c)``. Soft and unknown targets are
            never errors.
        probabilities: Sigmoid of the log-odds that were passed to ``find_label_errors``,
            ``(n, c)``.
        error_probabilities: Probability that the target is wrong, or 0 if ``known`` is False,
            ``(n, c)``.
        rates: Estimated rates of errors.
    """

    is_positive: Flags
    known: Flags
    probabilities: Array
    error_probabilities: Array
    rates: ErrorRates

    @property
    def flagged(self) -> Flags:
        """Return the mask of targets that are more likely wrong than correct, ``(n, c)``."""
        return self.known & (self.error_probabilities > ERROR_THRESHOLD)

    def ranking(self, kind: str, *, flagged_only: bool = True) -> npt.NDArray[np.int64]:
        """Return the targets of one kind of error as pairs (image, label), ``(m, 2)``.

        The targets are sorted by the probability of the opposite target, highest first.

        Args:
            kind: ``missing positive`` (negative targets) or ``wrong positive`` (positive targets).
            flagged_only: If True, only flagged targets are returned, otherwise all known targets of
                the kind.

        Raises:
            InputError: If the kind is unknown.
        """
        if kind not in ERROR_KINDS:
            raise InputError(
                f"kind must be one of {', '.join(map(repr, ERROR_KINDS))}; got {kind!r}."
            )
        sign = self.is_positive if kind == WRONG_POSITIVE else ~self.is_positive
        cells = np.argwhere(sign & (self.flagged if flagged_only else self.known))
        values = self.probabilities[cells[:, 0], cells[:, 1]]
        return cells[np.argsort(values if kind == WRONG_POSITIVE else -values, kind="stable")]


def find_label_errors(
    logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
) -> LabelErrors:
    """Estimate the probability that each target is wrong, from log-odds independent of the target.

    A label is truly positive with the probability t = sigmoid(a · logit + b). A truly positive
    target is negative at the rate m of missing positives, and a truly negative target is positive
    at the rate w of wrong positives. Then

        P(target positive)          = (1 - m) · t + w · (1 - t)
        P(error | target negative)  = m · t / (m · t + (1 - w) · (1 - t))
        P(error | target positive)  = w · (1 - t) / (w · (1 - t) + (1 - m) · t)

    The parameters a, b, m and w maximize the likelihood of all known targets and are shared by all
    labels. Among positive targets, and among negative targets, the order of the errors depends only
    on the order of the log-odds. The rates determine how many targets are flagged.

    Args:
        logits: Finite log-odds of n images and c labels, ``(n, c)``, that do not depend on the
            targets, such as those of ``logits_given_other_targets``.
        targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown. Soft targets, between
            0 and 1, are ignored.
        known: True where the target is known, ``(n, c)``. If None, all targets except NaN are
            known.

    Raises:
        InputError: If the shapes differ, if a logit is not finite, if a known target is outside
            [0, 1], or if the known targets contain no 1 or no 0.

    Source:
        Error rates of each class: Natarajan et al., Learning with Noisy Labels, NeurIPS 2013.
        Logistic regression with error rates: Bootkrajang and Kabán, Label-Noise Robust Logistic
        Regression and Its Applications, ECML 2012.

    Differs:
        The regression has one input, the log-odds of another model, and is shared by all labels.
        Errors are ranked by the probability of the opposite target, separately for positive and
        negative targets; see the page docs/label-errors.md.

    Example:
        >>> errors = find_label_errors([[4.0], [-4.0]] * 50, [[1], [0]] * 49 + [[0]] * 2)
        >>> errors.ranking("missing positive").tolist()
        [[98, 0]]
    """
    x = np.asarray(logits, dtype=np.float64)
    y, mask = validate_target_arrays(targets, known)
    check_shapes(logits=(x, "n c"), targets=(y, "n c"))
    if not np.isfinite(x).all():
        raise InputError(
            "logits must be finite; got NaN or infinite values. Leave out images with such values."
        )
    mask = mask & ((y == 0) | (y == 1))
    is_positive = mask & (y == 1)
    for name, n_targets in (("positive", is_positive.sum()), ("negative", (mask & (y == 0)).sum())):
        if not n_targets:
            raise InputError(
                "The estimation of label errors requires positive and negative targets; got no "
                f"{name} target. Add images with {name} targets."
            )
    rates, slope, level = _fit_error_rates(x[mask], is_positive[mask])
    true = expit(slope * x + level)
    missing, wrong = rates.missing * true, rates.wrong * (1 - true)
    errors = np.where(
        is_positive,
        wrong / (wrong + (1 - rates.missing) * true),
        missing / (missing + (1 - rates.wrong) * (1 - true)),
    )
    return LabelErrors(is_positive, mask, expit(x), np.where(mask, errors, 0.0), rates)


def _fit_error_rates(logits: Array, is_positive: Flags) -> tuple[ErrorRates, float, float]:
    """Return the rates, the slope a and the intercept b with the highest likelihood."""
    bins, index = np.unique(np.round(logits * _BINS_PER_UNIT), return_inverse=True)
    values, n_all = bins / _BINS_PER_UNIT, np.bincount(index)
    n_positive = np.bincount(index, is_positive)

    def negative_log_likelihood(parameters: Array) -> float:
        missing, wrong = expit(parameters[:2])
        true = expit(np.exp(parameters[2]) * values + parameters[3])
        p = np.clip(wrong + (1 - wrong - missing) * true, 1e-12, 1 - 1e-12)
        total = n_positive @ np.log(p) + (n_all - n_positive) @ np.log1p(-p)
        return float(-1000 * total / n_all.sum())

    fits = [
        minimize(negative_log_likelihood, [*start, 0.0, 0.0], method="L-BFGS-B", bounds=_BOUNDS)
        for start in _STARTS
    ]
    best = min(fits, key=lambda fit: float(fit.fun)).x
    missing, wrong = map(float, expit(best[:2]))
    return ErrorRates(missing, wrong), float(np.exp(best[2])), float(best[3])
