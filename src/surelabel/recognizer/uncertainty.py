"""Compute the uncertainty of labels, from calibrated probabilities or from a method."""

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit

from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.methods import METHODS, EstimatesUncertainty, Method
from surelabel.records import UNCERTAINTY_KINDS, Features, check_uncertainty_kind

BERNOULLI_VARIANCE, RESIDUAL_ERROR, MATCH_VARIANCE = UNCERTAINTY_KINDS


def available_uncertainty_kinds(method: Method, *, is_calibrated: bool) -> list[str]:
    """Return the kinds of uncertainty that a recognizer can estimate.

    Args:
        method: Method of the recognizer.
        is_calibrated: True if the recognizer has calibrated probabilities.
    """
    kinds = [BERNOULLI_VARIANCE] if is_calibrated else []
    if isinstance(method, EstimatesUncertainty):
        kinds += [RESIDUAL_ERROR, MATCH_VARIANCE]
    return kinds


def check_uncertainty_is_available(
    kind: str, method: Method, method_name: str, *, is_calibrated: bool
) -> None:
    """Check that a recognizer can estimate a kind of uncertainty, before an image is read.

    Args:
        kind: Kind of uncertainty.
        method: Method of the recognizer.
        method_name: Key of the method in ``METHODS``.
        is_calibrated: True if the recognizer has calibrated probabilities.

    Raises:
        InputError: If the kind is unknown.
        NotFitted: If the kind is ``bernoulli_variance``, and the recognizer is not calibrated.
        ConfigError: If the kind is learned, and the method does not estimate uncertainty.
    """
    check_uncertainty_kind(kind)
    if kind in available_uncertainty_kinds(method, is_calibrated=is_calibrated):
        return
    if kind == BERNOULLI_VARIANCE:
        raise NotFitted(
            f"{BERNOULLI_VARIANCE} needs calibrated probabilities; this recognizer is not "
            "calibrated. Calibrate the recognizer on annotated images (`surelabel calibrate`, or "
            "`recognizer.calibrate(held_out)`)."
        )
    names = [name for name, entry in METHODS.items() if issubclass(entry, EstimatesUncertainty)]
    raise ConfigError(
        f"{kind} needs a method that estimates the uncertainty of labels ({', '.join(names)}); "
        f"got {method_name}. Fit such a method, or use {BERNOULLI_VARIANCE}."
    )


def bernoulli_variances(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return 4p(1 - p), in [0, 1], for the probability p of each log-odds, of equal shape."""
    values = logits.astype(np.float64)
    variances: npt.NDArray[np.float32] = (4 * expit(values) * expit(-values)).astype(np.float32)
    return variances


@torch.no_grad()
def compute_uncertainty(
    kind: str,
    method: Method,
    features: Features,
    logits: npt.NDArray[np.float32] | None,
) -> npt.NDArray[np.float32]:
    """Return the uncertainty of each label in each image, ``(n, c)``.

    Args:
        kind: Kind of uncertainty that :func:`check_uncertainty_is_available` accepted:

            - ``bernoulli_variance``: 4p(1 - p) of the calibrated probability p, in [0, 1];
            - ``residual_error``: learned expectation of (y - p)² for the target y, in [0, 1];
            - ``match_variance``: learned variance of the latent similarity, above 0.
        method: Method of the recognizer.
        features: Features of n images.
        logits: Calibrated log-odds of n images and c labels, ``(n, c)``, which only
            ``bernoulli_variance`` uses.

    Raises:
        InputError: If a learned uncertainty is negative or not finite.
    """
    if kind == BERNOULLI_VARIANCE:
        assert logits is not None  # checked before
        return bernoulli_variances(logits)
    assert isinstance(method, EstimatesUncertainty)  # checked before
    estimate = method.residual_errors if kind == RESIDUAL_ERROR else method.match_variances
    uncertainty: npt.NDArray[np.float32] = estimate(features).cpu().numpy().astype(np.float32)
    if not (uncertainty >= 0).all() or not np.isfinite(uncertainty).all():
        raise InputError(
            f"{kind} must be finite and at least 0; the method computed other values, because the "
            "fit did not converge. Fit again with a lower learning_rate."
        )
    return uncertainty
