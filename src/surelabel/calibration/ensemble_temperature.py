"""Ensemble temperature scaling: the shared part of Mix-n-Match."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.calibration.checked import checked_state, known_decisions, smoothed
from surelabel.calibration.estimator import Estimator
from surelabel.calibration.protocol import Order
from surelabel.calibration.temperature import Temperature
from surelabel.errors import DataError
from surelabel.records import LOGIT_LIMIT, Array


class EnsembleTemperature(Estimator):
    """Mix tempered probabilities, those left alone, and how often a label is present at all.

        p = w1 · sigmoid(x / T) + w2 · sigmoid(x) + w3 · prior,   w >= 0,   w1 + w2 + w3 = 1

    T is that of ``Temperature``, the prior the share of present labels among the known ones, and
    w makes the log loss least. No probability leaves [w3 · prior, 1 - w3 · (1 - prior)], so
    logits far out come close together.

    Attributes:
        temperature_: The fitted T.
        weights_: The fitted w, ``(3,)``.
        prior_: Share of known labels that are present.

    Source:
        Zhang, Kailkhura and Han, Mix-n-Match: Ensemble and Compositional Methods for Uncertainty
        Calibration in Deep Learning, ICML 2020, arXiv:2003.07329.

    Differs:
        The sigmoid of every label in place of the softmax; the density of labels in place of the
        uniform 1 / c, which is far off where labels are rare. The weights are those of least
        log loss and not of least squared error, the authors' choice, which hardly sees
        rare labels. Targets are smoothed as Platt's are.

    Example:
        >>> x, y = [[-4.0], [-2.0], [2.0], [4.0], [4.0]], [[0], [0], [1], [1], [0]]
        >>> EnsembleTemperature().fit(x, y).weights_.round(3)
        array([0.   , 0.349, 0.651])
    """

    keeps_order: ClassVar[Order] = "with ties"
    sets_level: ClassVar[bool] = False
    shared: ClassVar[bool] = True

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit on held-out decisions.

        Args:
            logits: Log-odds, ``(n, c)``, finite.
            targets: In [0, 1], 1 = present, NaN where unknown, ``(n, c)``.
            known: True where the target is known, ``(n, c)``; all of them when left out.

        Raises:
            InputError: a value is not what it must be, or no decision is present, or none absent.
        """
        x, y = known_decisions(logits, targets, known)
        self.temperature_ = Temperature().fit(x[:, None], y[:, None]).temperature_
        self.prior_ = float(y.mean())
        self.weights_ = _likeliest_weights(*self._parts(x), smoothed(y))
        return self

    def state(self) -> dict[str, Any]:
        """The fitted temperature, weights and prior, ready for JSON."""
        self._check_fitted()
        return {
            "temperature": self.temperature_,
            "weights": self.weights_.tolist(),
            "prior": self.prior_,
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Take temperature, weights and prior back from ``state``."""
        found = checked_state(state, temperature="", weights="k", prior="")
        weights, prior = found["weights"], float(found["prior"])
        mixed = weights.shape == (3,) and weights.min() >= 0 and abs(weights.sum() - 1) < 1e-6
        if not mixed or not 0 < prior < 1:
            raise DataError(
                f"A saved mixture must have three weights >= 0 that sum to 1 and a prior inside "
                f"(0, 1). Got {weights.tolist()} and {prior}; calibrate again."
            )
        temperature = Temperature().restore({"temperature": state["temperature"]})
        self.temperature_, self.weights_, self.prior_ = temperature.temperature_, weights, prior
        return self

    def _log_odds(self, x: Array) -> Array:
        present, absent = self._parts(x)
        odds: Array = np.log(present @ self.weights_) - np.log(absent @ self.weights_)
        return odds

    def _parts(self, x: Array) -> tuple[Array, Array]:
        """What each of the three says of present and of absent, on a new last axis."""
        x = np.clip(x, -LOGIT_LIMIT, LOGIT_LIMIT)
        cool = np.clip(x / self.temperature_, -LOGIT_LIMIT, LOGIT_LIMIT)
        always = np.full(x.shape, self.prior_)
        present = np.stack([expit(cool), expit(x), always], axis=-1)
        return present, np.stack([expit(-cool), expit(-x), 1 - always], axis=-1)


def _likeliest_weights(present: Array, absent: Array, y: Array) -> Array:
    """Weights of least log loss, which is convex in them."""

    def loss(weights: Array) -> tuple[float, Array]:
        p, q = present @ weights, absent @ weights
        value = -(y * np.log(p) + (1 - y) * np.log(q)).mean()
        return float(value), -(present.T @ (y / p) + absent.T @ ((1 - y) / q)) / len(y)

    found = minimize(
        loss,
        [1 / 3, 1 / 3, 1 / 3],
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(3)},
        options={"ftol": 1e-12, "maxiter": 200},
    )
    weights = np.maximum(found.x, 0)
    mixed: Array = weights / weights.sum()
    return mixed
