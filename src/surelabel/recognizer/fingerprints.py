"""Hashes that identify a recognizer, and the run and data of a fit."""

import hashlib
from collections.abc import Sequence
from typing import Any

from surelabel.config import Run
from surelabel.encoders import Encoder
from surelabel.links import Link
from surelabel.migration import fingerprint_choice, fingerprint_weights
from surelabel.recognizer.calibration_record import Calibration
from surelabel.recognizer.fitting import TrainingData


def recognizer_fingerprint(
    run: Run,
    names_with_aliases: Sequence[str],
    encoder: Encoder,
    method: Any,
    link: Link | None,
    calibration: Calibration | None,
) -> str:
    """Return a hash of everything that determines the predictions of a recognizer.

    It covers encoder, method, names, link, method weights and calibration.
    """
    digest = hashlib.sha256(encoder.fingerprint.encode())
    choice = fingerprint_choice(run.method.name, run.method.settings)
    digest.update(f"({choice}, {names_with_aliases!r}, {link!r})".encode())
    for name, tensor in fingerprint_weights(run.method.name, method.state_dict()):
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    if calibration:
        digest.update(repr((calibration.name, calibration.calibrator.state())).encode())
        digest.update(repr(calibration.shift).encode() if calibration.shift else b"")
    return digest.hexdigest()[:16]


def run_identifier(run: Run, names_with_aliases: Sequence[str], data: TrainingData) -> str:
    """Return the identifier of a run with its labels, images and targets, for checkpoints."""
    digest = hashlib.sha256(repr((run, names_with_aliases, data.paths)).encode())
    for tensor in (data.targets, data.known, data.features.pooled):
        digest.update(tensor.numpy().tobytes())
    return f"{run.method.name} on {len(data.paths)} images, {digest.hexdigest()[:16]}"
