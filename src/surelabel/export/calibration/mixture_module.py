"""Export ensemble temperature scaling and histogram binning, which mix probabilities."""

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn

from surelabel.arrays import LOGIT_LIMIT, Array, Flags
from surelabel.calibration import EnsembleTemperature, Histogram
from surelabel.export.calibration.float32_steps import Float32Array, StepIndex, first_float32
from surelabel.export.calibration.log_probabilities import log_add_exp, log_sigmoid, log_weights


class EnsembleTemperatureModule(nn.Module):
    """Compute the log-odds of a mixture of two sigmoids and a constant probability.

    Args:
        calibrator: Fitted ensemble temperature scaling.
    """

    scale: Tensor
    log_weights: Tensor
    log_prior: Tensor

    def __init__(self, calibrator: EnsembleTemperature):
        super().__init__()
        weights, prior = calibrator.weights_, calibrator.prior_
        constant = log_weights(weights[2] * np.array([prior, 1 - prior]))
        constants = {
            "scale": np.array(1 / calibrator.temperature_),
            "log_weights": log_weights(weights[:2]),
            "log_prior": constant,
        }
        for name, values in constants.items():
            self.register_buffer(name, torch.from_numpy(values.astype(np.float32)))

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping; image vectors are not used."""
        x = raw.clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
        scaled = (x * self.scale).clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
        positive = self._log_mixture(scaled, x, self.log_prior[0])
        return positive - self._log_mixture(-scaled, -x, self.log_prior[1])

    def _log_mixture(self, scaled: Tensor, x: Tensor, log_constant: Tensor) -> Tensor:
        """Return the logarithm of the mixture of sigmoid(scaled), sigmoid(x) and a constant."""
        mixture = log_add_exp(
            self.log_weights[0] + log_sigmoid(scaled), self.log_weights[1] + log_sigmoid(x)
        )
        return log_add_exp(mixture, log_constant)


class HistogramModule(nn.Module):
    """Compute the log-odds of a bin, mixed with those of the input.

    The edges of the bins are the smallest float32 logits whose probability is in the next bin.
    Therefore every float32 logit has the same bin as in float64.

    Args:
        calibrator: Fitted histogram binning.
    """

    log_counts: Tensor
    log_weight: Tensor

    def __init__(self, calibrator: Histogram):
        super().__init__()
        self.index = StepIndex(_histogram_edges(len(calibrator.counts_)))
        negatives = np.maximum(calibrator.counts_ - calibrator.positives_, 0)
        counts = log_weights(np.stack([calibrator.positives_, negatives]))
        self.register_buffer("log_counts", torch.from_numpy(counts.astype(np.float32)))
        self.register_buffer("log_weight", torch.tensor(np.log(calibrator.weight_)).float())

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping; image vectors are not used."""
        x = raw.clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
        bins = self.index(x)
        positive = log_add_exp(self.log_counts[0][bins], self.log_weight + log_sigmoid(x))
        return positive - log_add_exp(self.log_counts[1][bins], self.log_weight + log_sigmoid(-x))


def _histogram_edges(count: int) -> Float32Array:
    """Return the smallest float32 logits of the bins 1 to ``count`` - 1, ``(count - 1,)``."""
    bins = np.arange(1, count)

    def is_in_bin_or_above(x: Array) -> Flags:
        flags: Flags = expit(x) * count >= bins
        return flags

    return first_float32(is_in_bin_or_above, bins.shape)
