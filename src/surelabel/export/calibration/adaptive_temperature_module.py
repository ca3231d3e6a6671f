"""Export adaptive temperature scaling."""

import numpy as np
import torch
from torch import Tensor, nn

from surelabel.calibration import AdaptiveTemperature
from surelabel.calibration.adaptive_temperature.adaptive_temperature import MAX_DEVIATIONS
from surelabel.errors import ConfigError
from surelabel.export.calibration.affine_module import AffineModule


class AdaptiveTemperatureModule(nn.Module):
    """Compute Platt scaling, divided by a temperature that depends on the image vector.

    Distances to the label means are computed from differences, not from products, so that large
    numbers do not cancel in float32. Squares are added up by a matrix product, because OpenVINO
    2026.4 returns wrong values if an addition follows a sum over the last of three axes.

    Args:
        calibrator: Fitted adaptive temperature scaling with a weight other than 0.
    """

    center: Tensor
    projection: Tensor
    deviations: Tensor
    label_means: Tensor
    log_frequencies: Tensor
    halves: Tensor
    feature_means: Tensor
    feature_scales: Tensor
    weights: Tensor

    def __init__(self, calibrator: AdaptiveTemperature):
        super().__init__()
        self.affine = AffineModule(calibrator.slope_, calibrator.shift_)
        density = calibrator.density_
        deviations = np.sqrt(density.variances)
        constants = {
            "center": density.center,
            "projection": density.projection.T / deviations,
            "deviations": deviations,
            "label_means": density.label_means / deviations,
            "log_frequencies": np.log(density.label_frequencies),
            "halves": np.full_like(deviations, 0.5),
            "feature_means": calibrator.feature_means_,
            "feature_scales": calibrator.feature_scales_,
            "weights": calibrator.weights_,
        }
        for name, values in constants.items():
            self.register_buffer(name, torch.from_numpy(values.astype(np.float32)))

    def forward(self, raw: Tensor, vectors: Tensor | None = None) -> Tensor:
        """Return log-odds, ``(n, c)``, without clipping.

        Args:
            raw: Log-odds or raw scores, ``(n, c)``.
            vectors: Vectors of the images, ``(n, d)``.

        Raises:
            ConfigError: If ``vectors`` is None.
        """
        if vectors is None:
            raise ConfigError(
                "adaptive_temperature requires the vector of each image; got none. Export a "
                "method that computes one vector per image, or use calibrator.name=platt."
            )
        features = (self._log_densities(vectors) - self.feature_means) / self.feature_scales
        features = features.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
        inverse_temperatures = (-(features * self.weights).sum(dim=1, keepdim=True)).exp()
        log_odds: Tensor = self.affine(raw) * inverse_temperatures
        return log_odds

    def _log_densities(self, vectors: Tensor) -> Tensor:
        """Return two log densities of each image, without constants, ``(n, 2)``."""
        components = (vectors - self.center) @ self.projection  # of variance 1 within labels
        differences = components[:, None] - self.label_means
        terms = self.log_frequencies - differences.square() @ self.halves
        largest = terms.amax(dim=1, keepdim=True)
        mixture = largest + (terms - largest).exp().sum(dim=1, keepdim=True).log()
        overall = -(components * self.deviations).square().sum(dim=1, keepdim=True) / 2
        return torch.cat([mixture, overall], dim=1)


def adaptive_temperature_module(
    calibrator: AdaptiveTemperature,
) -> AdaptiveTemperatureModule | AffineModule:
    """Return the module of the calibrator, or that of Platt scaling if all temperatures are 1."""
    if not calibrator.weights_.any():
        return AffineModule(calibrator.slope_, calibrator.shift_)
    return AdaptiveTemperatureModule(calibrator)
