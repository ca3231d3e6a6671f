"""Measure how much the probabilities of a recognizer change if images are encoded in bf16."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import nn

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.encoders.engines import ENGINES
from surelabel.encoders.engines.engine_encoder import has_bf16_instructions
from surelabel.errors import DataError
from surelabel.metrics import METRICS
from surelabel.records import Predictions

MAX_IMAGES = 1000
MAX_CHANGE = 0.02  # of any probability
MAX_CHANGE_99 = 0.005  # 99 % quantile of the changes of all probabilities
MAX_LOG_LOSS_RISE = 0.001  # relative
MIN_COSINE = 0.9999  # of the vectors of an image


@dataclass(frozen=True)
class DtypeCheck:
    """Changes of the probabilities and of the log loss with another number format than fp32.

    Attributes:
        engine: Engine of both computations.
        dtype: Number format that is compared with fp32.
        n_images: Number of annotated images.
        max_change: Largest absolute change of a probability.
        change_99: 99 % quantile of the absolute changes of all probabilities.
        log_loss_rise: Relative rise of the log loss over all known targets; negative if the log
            loss falls.
        min_cosine: Lowest cosine of the two vectors of an image.
        worst_image: Path of the image with this cosine.
    """

    engine: str
    dtype: str
    n_images: int
    max_change: float
    change_99: float
    log_loss_rise: float
    min_cosine: float
    worst_image: str

    @property
    def passes(self) -> bool:
        """Return whether all changes are within the limits of ``dtype="auto"``."""
        return (
            self.max_change <= MAX_CHANGE
            and self.change_99 <= MAX_CHANGE_99
            and self.log_loss_rise <= MAX_LOG_LOSS_RISE
            and self.min_cosine >= MIN_COSINE
        )

    @property
    def description(self) -> str:
        """Return a sentence with the changes, and whether they are within the limits."""
        limits = (
            f"{MAX_CHANGE}, {MAX_CHANGE_99}, {100 * MAX_LOG_LOSS_RISE:+.1f} %, cosine {MIN_COSINE}"
        )
        result = "are within the limits" if self.passes else f"exceed a limit ({limits})"
        return (
            f"{self.engine} {self.dtype} on {format_count(self.n_images, 'image')}: probabilities "
            f"change by at most {self.max_change:.4f}, 99 % of them by at most "
            f"{self.change_99:.4f}, and the log loss by {100 * self.log_loss_rise:+.3f} %. The "
            f"lowest cosine of the vectors of an image is {self.min_cosine:.6f} "
            f"({self.worst_image}). The changes {result}."
        )


def compare_dtypes(
    engine: str,
    dtype: str,
    expected: Predictions,
    changed: Predictions,
    targets: Array,
    known: Flags,
) -> DtypeCheck:
    """Return the changes of probabilities from fp32 to another number format.

    Args:
        engine: Engine of both computations.
        dtype: Number format of ``changed``.
        expected: Predictions of n images with fp32, with their vectors.
        changed: Predictions of the same images with ``dtype``, with their vectors.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
    """
    change = np.abs(changed.probabilities - expected.probabilities)
    before, after = (
        METRICS["log_loss"](each.probabilities, targets, known) for each in (expected, changed)
    )
    first, second = (_unit_vectors(each) for each in (expected, changed))
    cosines = (first * second).sum(axis=1)
    worst = int(cosines.argmin())
    return DtypeCheck(
        engine,
        dtype,
        len(expected),
        float(change.max()),
        float(np.quantile(change, 0.99)),
        float(after / before - 1),
        float(cosines[worst]),
        str(expected.paths[worst]),
    )


def _unit_vectors(predictions: Predictions) -> Array:
    """Return the vectors of the images, normalized in float64, ``(n, d)``."""
    assert predictions.features is not None  # of images
    vectors = predictions.features.astype(np.float64)
    unit: Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def rows_of_dtype_check(n_images: int) -> list[int]:
    """Return the rows of at most 1,000 images, at equal distances."""
    step = max(1, -(-n_images // MAX_IMAGES))
    return list(range(0, n_images, step))


def can_check_dtype(encoder: Encoder, engine: str) -> bool:
    """Return whether bf16 is supported by an engine, by an encoder and by its device."""
    if encoder.engine.dtype == "int8":
        return False
    has_network = isinstance(getattr(encoder, "model", None), nn.Module)
    return (
        has_network and "bf16" in ENGINES[engine].dtypes and has_bf16_instructions(encoder.device)
    )


def resolve_auto_dtype(engine: str, checks: Sequence[DtypeCheck], device: torch.device) -> str:
    """Return ``bf16`` if it is fast and a check passed; otherwise, warn and return ``fp32``.

    Args:
        engine: Engine of the computation.
        checks: Checks that are stored in the recognizer.
        device: Device of the computation.
    """
    check = next((c for c in checks if (c.engine, c.dtype) == (engine, "bf16")), None)
    if engine in ENGINES and "bf16" not in ENGINES[engine].dtypes:
        reason = f"{engine} does not support bf16"
    elif not has_bf16_instructions(device):
        reason = f"{device} has no instructions for bf16"
    elif check is None:
        reason = (
            f"the recognizer has no check of bf16 with {engine} (`surelabel calibrate --engine "
            f"{engine}`)"
        )
    elif not check.passes:
        reason = f"the check failed: {check.description.rstrip('.')}"
    else:
        return "bf16"
    warnings.warn(f"Images are encoded in fp32, because {reason}.", stacklevel=3)
    return "fp32"


def dtype_checks_as_json(checks: Sequence[DtypeCheck]) -> dict[str, Any]:
    """Return checks as a JSON object."""
    return {"checks": [asdict(check) for check in checks]}


def restore_dtype_checks(value: dict[str, Any]) -> tuple[DtypeCheck, ...]:
    """Return the checks of :func:`dtype_checks_as_json`.

    Raises:
        DataError: If a field is missing, unknown or invalid.
    """
    try:
        checks = tuple(DtypeCheck(**fields) for fields in value["checks"])
        for check in checks:
            numbers = (check.max_change, check.change_99, check.log_loss_rise, check.min_cosine)
            if type(check.n_images) is not int or not all(
                type(number) in (int, float) and isfinite(number) for number in numbers
            ):
                raise TypeError
            texts = (check.engine, check.dtype, check.worst_image)
            if not all(isinstance(text, str) for text in texts):
                raise TypeError
    except (KeyError, TypeError) as error:
        raise DataError(
            "dtype_checks.json must contain a list of checks, each with an engine, a number format "
            f"and finite changes; got {str(value)[:200]}. Calibrate again."
        ) from error
    return checks
