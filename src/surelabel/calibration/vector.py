"""Vector scaling: Platt scaling of every label, shrunk to what all labels share."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.calibration.checked import check_labels, checked_amount, checked_state, known_matrix
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.platt import Platt
from surelabel.calibration.protocol import Order
from surelabel.errors import DataError
from surelabel.records import Array

FLATTEST = 1e-3  # least slope of a label, as a share of the slope that all labels share
FARTHEST = 1.5  # no logit moves farther in one Newton step: below 1.79 the loss always falls
STEPS, CLOSE = 200, 1e-8
BLOCK = 16  # labels at a time, so that their rows stay in the processor's cache


class Vector(Estimator):
    """Stretch and shift the logits of every label by its own two numbers, near the common two.

        z = a · x + b                      Platt scaling, shared by all labels
        logit_c = u_c · z + v_c,   u_c > 0
        u, v = least   log loss of label c  +  shrinkage / 2 · ((u - 1)^2 + v^2)

    The log loss is a sum over decisions, so a label with many of them goes its own way and a rare
    one stays with the others. A label without known positives, or without known negatives, keeps
    the shared two numbers: simulated, letting such labels move cost four times the log loss.

    Args:
        shrinkage: Pull towards the shared numbers, above 0. 1 suits labels whose levels differ
            by about 1 nat from each other; 4 those that differ by half of that.

    Attributes:
        shared_: The fitted ``Platt``.
        slopes_: a · u of every label, ``(c,)``.
        shifts_: b · u + v of every label, ``(c,)``.

    Source:
        Vector scaling in Guo et al., On Calibration of Modern Neural Networks, ICML 2017,
        arXiv:1706.04599, with a sigmoid for each label.

    Differs:
        The pull towards the shared numbers is ours: with a sigmoid for each label, a rare one
        has a handful of positives and its own two numbers would be noise.

    Example:
        >>> x = [[-1.0, 3.0]] * 9 + [[1.0, 5.0]]
        >>> y = [[0, 0]] * 4 + [[1, 0]] + [[0, 1]] * 4 + [[1, 1]]
        >>> Vector().fit(x, y).slopes_.round(4)
        array([0.4576, 0.4666])
    """

    keeps_order: ClassVar[Order] = "strictly"
    sets_level: ClassVar[bool] = True
    shared: ClassVar[bool] = False

    def __init__(self, *, shrinkage: float = 1.0) -> None:
        self.shrinkage = shrinkage
        self._check_settings()

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit on held-out decisions, all labels at once.

        Args:
            logits: Log-odds or raw scores, ``(n, c)``, finite.
            targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
            known: True where the target is known, ``(n, c)``; all of them when left out.

        Raises:
            InputError: a value is not what it must be, or no decision is present, or none absent.
        """
        x, y, seen = known_matrix(logits, targets, known)
        self.shared_ = Platt().fit(x, y, seen)
        z = np.ascontiguousarray(self.shared_.logits(x).T)
        y, weight = np.ascontiguousarray(y.T), np.ascontiguousarray(seen.T, dtype=np.float64)
        stretch, shift = np.ones(len(z)), np.zeros(len(z))
        present = y.sum(axis=1)
        learnable = np.flatnonzero((present > 0) & (present < weight.sum(axis=1)))
        for start in range(0, len(learnable), BLOCK):
            at = learnable[start : start + BLOCK]
            stretch[at], shift[at] = _likeliest_pairs(z[at], y[at], weight[at], self.shrinkage)
        self.slopes_ = self.shared_.slope_ * stretch
        self.shifts_ = self.shared_.shift_ * stretch + shift
        return self

    def shared_part(self) -> Platt:
        """The Platt scaling that all labels share."""
        self._check_fitted()
        return self.shared_

    def state(self) -> dict[str, Any]:
        """The fitted numbers, shared and of every label, ready for JSON."""
        self._check_fitted()
        return {
            "slopes": self.slopes_.tolist(),
            "shifts": self.shifts_.tolist(),
            **self.shared_.state(),
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Take fitted numbers back from ``state``."""
        found = checked_state(state, slopes="c", shifts="c", slope="", shift="")
        if found["slopes"].min() <= 0:
            raise DataError(
                f"Saved slopes must be above 0. Got {found['slopes'].min()}; calibrate again."
            )
        self.shared_ = Platt().restore({name: state[name] for name in ("slope", "shift")})
        self.slopes_, self.shifts_ = found["slopes"], found["shifts"]
        return self

    def _log_odds(self, x: Array) -> Array:
        check_labels(x, len(self.slopes_))
        return self.slopes_ * x + self.shifts_

    def _check_settings(self) -> None:
        checked_amount("shrinkage", self.shrinkage)


def _likeliest_pairs(z: Array, y: Array, weight: Array, shrinkage: float) -> tuple[Array, Array]:
    """Slope and shift of each row of ``z`` ``(c, n)``, by Newton steps of limited length.

    The steps are short enough for the loss, which is convex, to fall in each of them.
    """
    slope, shift = np.ones(len(z)), np.zeros(len(z))
    largest = np.abs(z).max(axis=1)
    for _ in range(STEPS):
        p = expit(slope[:, None] * z + shift[:, None])
        residual, bend = weight * (p - y), weight * p * (1 - p)
        g_slope = np.einsum("cn,cn->c", residual, z) + shrinkage * (slope - 1)
        g_shift = residual.sum(axis=1) + shrinkage * shift
        bent = bend * z
        h_slope = np.einsum("cn,cn->c", bent, z) + shrinkage
        h_both, h_shift = bent.sum(axis=1), bend.sum(axis=1) + shrinkage
        area = h_slope * h_shift - h_both**2
        by_slope = (h_both * g_shift - h_shift * g_slope) / area
        by_shift = (h_both * g_slope - h_slope * g_shift) / area
        stuck = (slope <= FLATTEST) & (by_slope < 0)
        by_slope = np.where(stuck, 0.0, by_slope)
        by_shift = np.where(stuck, -g_shift / h_shift, by_shift)
        reach = np.abs(by_slope) * largest + np.abs(by_shift)
        part = np.minimum(1, FARTHEST / np.maximum(reach, CLOSE))
        slope = np.maximum(slope + part * by_slope, FLATTEST)
        shift = shift + part * by_shift
        if reach.max() < CLOSE:
            break
    return slope, shift
