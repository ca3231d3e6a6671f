"""Calibrated logits for a new archive in which labels are more or less common than before."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from surelabel.calibration.checked import checked_amount, checked_logits
from surelabel.errors import ConfigError, InputError
from surelabel.records import LOGIT_LIMIT, Array

CLOSE = 1e-6  # log-odds of a prior that moves less has arrived


@dataclass(frozen=True)
class Shift:
    """What ``label_shift`` found.

    Attributes:
        priors: How common each label is in the new archive, inside (0, 1), ``(c,)``.
        shift: What to add to the calibrated logits, ``(c,)``.
        steps: How many passes it took.
        converged: Whether the priors had come to rest by then.
    """

    priors: Array
    shift: Array
    steps: int
    converged: bool

    def logits(self, logits: npt.ArrayLike) -> Array:
        """Calibrated logits ``(n, c)`` of pictures of the new archive, moved, in [-40, 40].

        Raises:
            InputError: they have other labels.
        """
        x = checked_logits(logits)
        if x.shape[1] != len(self.shift):
            raise InputError(
                f"logits must have the {len(self.shift)} labels whose shift was found. Got "
                f"{x.shape[1]}; find the shift of these."
            )
        return np.clip(x + self.shift, -LOGIT_LIMIT, LOGIT_LIMIT)


def label_shift(
    logits: npt.ArrayLike,
    prior: npt.ArrayLike,
    *,
    pseudo_count: float = 10.0,
    steps: int = 1000,
) -> Shift:
    """How common each label is in a new archive, from calibrated logits and no label of it.

        shift = logit(q) - logit(prior)
        q = (Σ sigmoid(logits + shift) + m · prior) / (n + m),   m = ``pseudo_count``,

    repeated until q rests, each label by itself. It holds where only the frequencies changed: the
    pictures with a label must look as they did, and so those without it. A new camera
    or season breaks that, and then labelled pictures are the only remedy.

    Args:
        logits: Calibrated log-odds of pictures of the new archive, ``(n, c)``, finite.
        prior: Share of the pictures with each label among those that calibrated, inside (0, 1),
            ``(c,)``.
        pseudo_count: How many pictures the old share weighs, so that a small archive moves
            little. Above 0.
        steps: Most passes, >= 1.

    Returns:
        The new shares, the shift of the logits, and how the search went.

    Raises:
        InputError: the logits are of no picture or not finite, or ``prior`` is not one number
            inside (0, 1) a label.
        ConfigError: a setting is out of its range.

    Source:
        Saerens, Latinne and Decaestecker, Adjusting the Outputs of a Classifier to New a Priori
        Probabilities: A Simple Procedure, Neural Computation, 2002; that it needs calibrated
        probabilities: Alexandari, Kundaje and Shrikumar, Maximum Likelihood with Bias-Corrected
        Calibration is Hard-To-Beat at Label Shift Adaptation, ICML 2020, arXiv:1901.06852.

    Differs:
        Each label is a problem of two classes of its own. The pseudo-count is ours: without it a
        label that no picture of the archive seems to have would get the share 0 for ever.

    Example:
        >>> found = label_shift([[2.0], [2.0], [2.0], [-2.0]], [0.5], pseudo_count=1)
        >>> found.priors.round(4), found.shift.round(4), found.converged
        (array([0.7224]), array([0.9566]), True)
    """
    x = checked_logits(logits)
    if not len(x):
        raise InputError(
            "logits must be of at least one picture. Got none; add some of the archive."
        )
    prior = _checked_prior(prior, x.shape[1])
    checked_amount("pseudo_count", pseudo_count)
    if not float(steps).is_integer() or steps < 1:
        raise ConfigError(f"steps must be a whole number of at least 1. Got {steps}.")
    old = logit(prior)
    shift, moving = np.zeros_like(prior), np.ones(len(prior), dtype=bool)
    step = 0
    while moving.any() and step < steps:
        present = expit(x[:, moving] + shift[moving]).sum(axis=0)
        q = (present + pseudo_count * prior[moving]) / (len(x) + pseudo_count)
        before, shift[moving] = shift[moving], logit(q) - old[moving]
        moving[moving] = np.abs(shift[moving] - before) > CLOSE
        step += 1
    return Shift(expit(old + shift), shift, step, not moving.any())


def _checked_prior(prior: npt.ArrayLike, count: int) -> Array:
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (count,):
        raise InputError(f"prior must be one number a label, ({count},). Got {prior.shape}.")
    wrong = ~((prior > 0) & (prior < 1))  # also NaN
    if wrong.any():
        raise InputError(
            f"prior must lie inside (0, 1). Got {prior[wrong][0]} for label {wrong.argmax()}; a "
            "label that all, or none, of the calibrating pictures had cannot be moved: leave it "
            "out."
        )
    return prior
