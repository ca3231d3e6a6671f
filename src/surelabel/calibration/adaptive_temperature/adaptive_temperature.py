"""Scale logits by a temperature for each image, computed from the density of its vector."""

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.calibration.adaptive_temperature.image_density import (
    ImageDensity,
    cross_fitted_log_densities,
    fit_image_density,
)
from surelabel.calibration.adaptive_temperature.temperature_weights import (
    MAX_WEIGHT,
    fit_temperature_weights,
)
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.calibration.fitting.input_validation import (
    check_positive_calibrator_setting,
    validate_calibration_data,
    validate_calibrator_state,
)
from surelabel.calibration.interface import OrderPreservation
from surelabel.calibration.platt import Platt
from surelabel.counts import format_count
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.shapes import check_shapes

MIN_IMAGES = 100  # fewest images for different temperatures; with fewer, the log loss was higher
MIN_FEATURE_SCALE = 0.5  # nats; smaller differences of log densities are noise
MAX_DEVIATIONS = 3.0  # limit of standardized log densities; larger deviations are clipped


class AdaptiveTemperature(BaseCalibrator):
    """Adaptive temperature scaling (ATS): Platt scaling, with a temperature for each image.

        logit = (a · x + b) / T(h)
        log T(h) = w1 · f1(h) + w2 · f2(h)

    Here x is the input logit or raw score of an image, and h is the image vector. The slope a and
    the shift b are shared by all images, and the temperature T is shared by all labels of an image.
    f1 is the log density of h under a mixture of one Gaussian for each label. f2 is the log density
    of h under one Gaussian of all images. Both log densities are standardized. T therefore depends
    on whether the image is similar to the calibration images. The Gaussians of the labels have the
    means of the positive images and a common diagonal covariance, in the space of the first
    principal components. The parameters a, b, w1 and w2 minimize the log loss, summed over the
    known targets, plus shrinkage / 2 · (w1^2 + w2^2).

    The order of the labels within an image does not change, but the order of images may change.
    ``Recognizer`` calls ``with_image_vectors``, which sets the image vectors of ``fit`` and
    ``logits``. On the emoji scenes of this package, the log loss is about equal to that of
    ``Platt``; see the page docs/calibrators.md. With fewer than 100 images, all temperatures are 1.

    Args:
        components: Maximum number of principal components, >= 1. At most one component is used for
            every four calibration images.
        shrinkage: Strength of the penalty that shrinks w1 and w2 towards 0, above 0.

    Attributes:
        slope_: Fitted slope a, above 0.
        shift_: Fitted shift b.
        weights_: Fitted weights w1 and w2, in [-0.5, 0.5], ``(2,)``. The temperatures are in
            [exp(-3), exp(3)], because standardized log densities are clipped to [-3, 3].
        density_: Fitted Gaussian densities of the image vectors.
        feature_means_: Means of the log densities on the calibration images, ``(2,)``.
        feature_scales_: Standard deviations of the log densities on the calibration images, at
            least 0.5, ``(2,)``.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Joy et al., Sample-dependent Adaptive Temperature Scaling for Improved Calibration, AAAI
        2023, arXiv:2207.06211.

    Differs:
        The authors fit a variational autoencoder with a Gaussian prior for each class, and compute
        T by a network with two hidden layers from the log densities of all classes. Here the
        densities are Gaussians of the image vectors, and log T is linear in two log densities. A
        network with one hidden layer had a higher log loss with few images. The log densities of
        the calibration images are cross-fitted. A sigmoid for each label replaces the softmax, and
        the slope and the shift precede the temperature, so that raw scores can be calibrated.
        Targets are smoothed as in Platt scaling.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> vectors, x = rng.normal(size=(200, 8)), rng.normal(size=(200, 3))
        >>> y = x + rng.normal(size=(200, 3)) > 0
        >>> calibrator = AdaptiveTemperature().with_image_vectors(vectors).fit(x, y)
        >>> calibrator.with_image_vectors(vectors[:5]).logits(x[:5]).shape
        (5, 3)
    """

    keeps_order: ClassVar[OrderPreservation] = "no"
    accepts_raw_scores: ClassVar[bool] = True
    shares_parameters: ClassVar[bool] = True
    _vectors: Array | None = None

    def __init__(self, *, components: int = 32, shrinkage: float = 100.0) -> None:
        if components != int(components) or components < 1:
            raise ConfigError(f"components must be a whole number of at least 1; got {components}.")
        check_positive_calibrator_setting("shrinkage", shrinkage)
        self.components, self.shrinkage = components, shrinkage

    def with_image_vectors(self, vectors: npt.ArrayLike | None) -> Self:
        """Return a copy whose ``fit`` and ``logits`` use the vectors of n images.

        Args:
            vectors: Vectors of the images, ``(n, d)``, in the order of the rows of the logits. If
                None, the copy has no vectors.

        Raises:
            InputError: If the axes are not ``(n, d)``, or if a value is not finite.
        """
        other = copy(self)
        other._vectors = None if vectors is None else _validate_image_vectors(vectors)
        return other

    def fit(
        self, logits: npt.ArrayLike, targets: npt.ArrayLike, known: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the densities, the slope, the shift and the weights on held-out data.

        Args:
            logits: Finite log-odds or raw scores of n images and c labels, ``(n, c)``.
            targets: Targets in [0, 1], ``(n, c)``: 1 is positive, NaN is unknown.
            known: True where the target is known, ``(n, c)``. If None, all targets except
                NaN are known.

        Returns:
            The fitted calibrator.

        Raises:
            ConfigError: If the calibrator has no image vectors.
            InputError: If the shapes differ, if a logit is not finite, if a known target is outside
                [0, 1], or if the known targets contain no positive or no negative target. If the
                number of image vectors is not n.
        """
        x, y, known = validate_calibration_data(logits, targets, known)
        vectors = self._image_vectors(x)
        settings = {"components": int(self.components)}
        self.density_ = fit_image_density(vectors, y, **settings)
        platt = Platt().fit(x, y, known)
        self.slope_, self.shift_ = platt.slope_, platt.shift_
        self.feature_means_, self.feature_scales_ = np.zeros(2), np.ones(2)
        self.weights_ = np.zeros(2)
        if len(vectors) < MIN_IMAGES:
            return self
        log_densities = cross_fitted_log_densities(vectors, y, **settings)
        self.feature_means_ = log_densities.mean(axis=0)
        self.feature_scales_ = np.maximum(log_densities.std(axis=0), MIN_FEATURE_SCALE)
        slope, shift, self.weights_ = fit_temperature_weights(
            platt.logits(x), y, known, self._standardize(log_densities), self.shrinkage
        )
        self.slope_, self.shift_ = slope * platt.slope_, slope * platt.shift_ + shift
        return self

    def temperatures(self, vectors: npt.ArrayLike) -> Array:
        """Return the temperature of each image, in [exp(-3), exp(3)], ``(n,)``.

        Args:
            vectors: Vectors of n images, ``(n, d)``.

        Raises:
            NotFitted: If the calibrator is not fitted.
            InputError: If a vector is not finite or does not have the dimension d of the vectors of
                the calibration images.
        """
        self._check_fitted()
        vectors = _validate_image_vectors(vectors)
        if vectors.shape[1] != len(self.density_.center):
            raise InputError(
                f"Each image vector must have {len(self.density_.center)} values, as in the "
                f"calibration; got {vectors.shape[1]}. Use the same encoder."
            )
        features = self._standardize(self.density_.log_densities(vectors))
        temperatures: Array = np.exp(features @ self.weights_)
        return temperatures

    def state(self) -> dict[str, Any]:
        """Return the fitted parameters as a JSON-compatible dict."""
        self._check_fitted()
        return {
            "slope": self.slope_,
            "shift": self.shift_,
            "weights": self.weights_.tolist(),
            "feature_means": self.feature_means_.tolist(),
            "feature_scales": self.feature_scales_.tolist(),
            **{name: value.tolist() for name, value in vars(self.density_).items()},
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Load the parameters from the output of ``state``.

        Raises:
            DataError: If a name in ``state`` is missing or unexpected, or if a value is invalid.
        """
        features = {"weights": "f", "feature_means": "f", "feature_scales": "f"}
        density = {
            "center": "d",
            "projection": "k d",
            "label_means": "c k",
            "label_frequencies": "c",
            "variances": "k",
        }
        arrays = validate_calibrator_state(state, slope="", shift="", **features, **density)
        above_0 = ("slope", "feature_scales", "label_frequencies", "variances")
        smallest = min(float(arrays[name].min()) for name in above_0)
        if smallest <= 0 or arrays["weights"].shape != (2,):
            raise DataError(
                f"The saved {', '.join(above_0)} must be above 0, and weights must contain two "
                f"numbers; got the minimum {smallest} and {arrays['weights'].size} weights. "
                "Calibrate again."
            )
        self.slope_, self.shift_ = float(arrays["slope"]), float(arrays["shift"])
        self.weights_ = np.clip(arrays["weights"], -MAX_WEIGHT, MAX_WEIGHT)
        self.feature_means_ = arrays["feature_means"]
        self.feature_scales_ = arrays["feature_scales"]
        self.density_ = ImageDensity(**{name: arrays[name] for name in density})
        return self

    def _calibrated_log_odds(self, x: Array) -> Array:
        temperatures = self.temperatures(self._image_vectors(x))
        return (self.slope_ * x + self.shift_) / temperatures[:, None]

    def _standardize(self, log_densities: Array) -> Array:
        """Return the log densities ``(n, 2)``, standardized and clipped to [-3, 3]."""
        features = (log_densities - self.feature_means_) / self.feature_scales_
        return np.clip(features, -MAX_DEVIATIONS, MAX_DEVIATIONS)

    def _image_vectors(self, x: Array) -> Array:
        """Return the vectors of the images of ``x``, ``(n, d)``."""
        if self._vectors is None:
            raise ConfigError(
                "adaptive_temperature requires the vector of each image; got none. Call "
                "with_image_vectors first, or use calibrator.name=platt."
            )
        check_shapes(logits=(x, "n c"), vectors=(self._vectors, "n d"))
        return self._vectors


def _validate_image_vectors(vectors: npt.ArrayLike) -> Array:
    """Return the image vectors ``(n, d)`` in float64, after a check that they are finite."""
    vectors = np.asarray(vectors, dtype=np.float64)
    check_shapes(vectors=(vectors, "n d"))
    if not np.isfinite(vectors).all():
        raise InputError(
            "Image vectors must be finite numbers; got "
            f"{format_count((~np.isfinite(vectors)).sum(), 'NaN or infinite value')}. "
            "Remove the images with these values."
        )
    return vectors
