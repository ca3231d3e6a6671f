"""Short names for what a recognizer is, and for what a fit was begun on."""

import hashlib
from collections.abc import Sequence
from typing import Any

from surelabel.backbones import Backbone
from surelabel.config import Run
from surelabel.links import Link
from surelabel.recognizer.calibrating import Calibration
from surelabel.recognizer.fitting import Examples


def fingerprint_of(
    run: Run,
    spellings: Sequence[str],
    backbone: Backbone,
    method: Any,
    link: Link | None,
    calibration: Calibration | None,
) -> str:
    """Changes with anything that changes a prediction."""
    text = hashlib.sha256(backbone.fingerprint.encode())
    text.update(repr((run.method, spellings, link)).encode())
    for name, tensor in sorted(method.state_dict().items()):
        text.update(name.encode() + tensor.cpu().numpy().tobytes())
    if calibration:
        text.update(repr((calibration.name, calibration.fitted.state())).encode())
        text.update(repr(calibration.shift).encode() if calibration.shift else b"")
    return text.hexdigest()[:16]


def purpose_of(run: Run, spellings: Sequence[str], examples: Examples) -> str:
    """What a checkpoint belongs to: this run, these names, these pictures and labels."""
    text = hashlib.sha256(repr((run, spellings, examples.paths)).encode())
    for tensor in (examples.targets, examples.known, examples.features.pooled):
        text.update(tensor.numpy().tobytes())
    return f"{run.method.name} on {len(examples.paths)} pictures, {text.hexdigest()[:16]}"
