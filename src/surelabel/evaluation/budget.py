"""How many labelled pictures a calibrator needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.calibration import Calibrator
from surelabel.errors import ConfigError, InputError
from surelabel.metrics import log_loss_of_logits, noise_floor
from surelabel.metrics.calibration_error import ece
from surelabel.records import Array, Flags, checked_targets
from surelabel.shapes import check_shapes

FEWEST = 100  # labelled pictures without which nothing can be said
FIRST = 25  # the smallest budget that is tried when none is given
FALL = 0.001  # of the ECE that is not worth another labelled picture ...
SHARE = 0.1  # ... nor is this share of what is left of it ...
LOSS_SHARE = 0.01  # ... nor this share of the log loss
FLOOR_DRAWS = 4  # of the noise floor, in each draw


@dataclass(frozen=True)
class Budget:
    """Calibration error against the number of labelled pictures, k budgets in several draws.

    Attributes:
        sizes: Labelled pictures that the calibrator was fitted on, smallest first, k of them.
        ece: Pooled ECE on the other pictures, NaN where the drawn pictures held no label that is
            there or none that is not, ``(k, draws)``.
        log_loss: Mean log loss of the same decisions, nats, ``(k, draws)``.
        floor: ECE that perfectly calibrated probabilities would show on as many pictures.
        measured: Pictures that each of them was measured on.
    """

    sizes: tuple[int, ...]
    ece: Array
    log_loss: Array
    floor: float
    measured: int

    @property
    def mean_ece(self) -> Array:
        """Of the draws for which it is defined, ``(k,)``; NaN where there is none."""
        return _mean(self.ece)

    @property
    def mean_log_loss(self) -> Array:
        """The same of the log loss, ``(k,)``."""
        return _mean(self.log_loss)

    @property
    def enough(self) -> int | None:
        """The smallest budget that all larger ones hardly better; None when only the largest is.

        Hardly: the mean ECE falls by at most 0.1 points or a tenth of what is left of it, and the
        mean log loss by at most a hundredth.
        """
        errors, losses = self.mean_ece, self.mean_log_loss
        if np.isnan(errors).all():
            return None
        best_error, best_loss = np.nanmin(errors), np.nanmin(losses)
        for size, error, loss in zip(self.sizes[:-1], errors, losses, strict=False):
            little = error - best_error <= max(FALL, SHARE * best_error)
            if little and loss - best_loss <= LOSS_SHARE * best_loss:
                return size
        return None


def label_budget(
    make_calibrator: Callable[[], Calibrator],
    logits: npt.ArrayLike,
    targets: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    sizes: Sequence[int] | None = None,
    draws: int = 10,
    seed: int = 0,
) -> Budget:
    """Fit a calibrator on few and on many labelled pictures, and measure it on others.

        each draw: shuffle the pictures, set n - max(sizes) apart to measure on,
        fit on the first m of the others, for every m in sizes

    All budgets of a draw are measured on the same pictures, and the smaller ones are parts of the
    larger, so that their differences are those of the budgets alone.

    Args:
        make_calibrator: Gives an unfitted calibrator.
        logits: What the calibrator takes, log-odds or raw scores, ``(n, c)``.
        targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        sizes: Budgets in pictures, each >= 1; 25, 50, 100 … up to half of the pictures when left
            out.
        draws: How often, >= 1.
        seed: Of the shuffling.

    Returns:
        Calibration error of every budget and draw.

    Raises:
        InputError: shapes differ, fewer than 100 pictures have a known label, or what the
            calibrator raises.
        ConfigError: a size leaves no picture to measure on, or ``draws`` is below 1.

    Source:
        None; ours. A learning curve by repeated sub-sampling.

    Example:
        >>> from surelabel.calibration import Platt
        >>> random = np.random.default_rng(0)
        >>> x = random.normal(size=(400, 3))
        >>> found = label_budget(Platt, x, random.random((400, 3)) < expit(2 * x - 1))
        >>> found.sizes, found.measured, found.ece.shape
        ((25, 50, 100, 200), 200, (4, 10))
    """
    x = np.asarray(logits, dtype=np.float64)
    y, given = checked_targets(targets, known)
    check_shapes(logits=(x, "n c"), targets=(y, "n c"))
    rows = np.flatnonzero(given.any(axis=1))
    chosen = _checked_sizes(sizes, len(rows))
    if draws != int(draws) or draws < 1:
        raise ConfigError(f"draws must be a whole number of at least 1. Got {draws}.")
    errors = np.full((2, len(chosen), int(draws)), np.nan)
    floors = []
    for draw, stream in enumerate(np.random.default_rng(seed).spawn(int(draws))):
        order = stream.permutation(rows)
        apart = order[chosen[-1] :]
        for k, size in enumerate(chosen):
            part = order[:size]
            if not _has_both(y[part], given[part]):
                continue
            fitted = make_calibrator().fit(x[part], y[part], given[part])
            z = fitted.logits(x[apart])
            p = expit(z)
            errors[0, k, draw] = ece(p, y[apart], given[apart])
            errors[1, k, draw] = log_loss_of_logits(z, y[apart], given[apart])
            if size == chosen[-1]:
                floors.append(noise_floor(ece, p, given[apart], draws=FLOOR_DRAWS, seed=draw))
    floor = float(np.mean(floors)) if floors else float("nan")
    return Budget(chosen, errors[0], errors[1], floor, len(rows) - chosen[-1])


def _checked_sizes(sizes: Sequence[int] | None, n: int) -> tuple[int, ...]:
    if n < FEWEST:
        raise InputError(
            f"To say how many labels are enough takes {FEWEST} labelled pictures or more. "
            f"Got {n}: label more, or leave this out."
        )
    if sizes is None:
        doubled = FIRST * 2 ** np.arange(np.log2(n / 2 / FIRST) + 1e-9)
        return tuple(int(size) for size in doubled)
    chosen = tuple(sorted({int(size) for size in sizes}))
    if not chosen or chosen[0] < 1 or chosen[-1] >= n:
        raise ConfigError(
            f"sizes must be whole numbers from 1 to {n - 1}, so that some of the {n} labelled "
            f"pictures are left to measure on. Got {list(sizes)}."
        )
    return chosen


def _has_both(targets: Array, known: Flags) -> bool:
    """Whether some known label is there, and some is not."""
    told = targets[known]
    return bool((told > 0).any() and (told < 1).any())


def _mean(values: Array) -> Array:
    defined = ~np.isnan(values)
    total, count = np.where(defined, values, 0).sum(axis=1), defined.sum(axis=1)
    mean: Array = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return mean
