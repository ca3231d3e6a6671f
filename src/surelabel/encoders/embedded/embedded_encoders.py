"""Table of the encoders in the package, and their calibration of zero-shot scores."""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from surelabel.encoders.interface import Encoder
from surelabel.encoders.open_clip.encoder import OpenClipEncoder
from surelabel.encoders.tiny_rn import tiny_rn
from surelabel.encoders.tiny_vit import tiny_vit
from surelabel.errors import DataError

ENCODERS = {"tiny-rn": tiny_rn, "tiny-vit": tiny_vit}


def embedded_calibration(
    encoder: Encoder, *, templates: str | Sequence[str] = "one"
) -> dict[str, Any] | None:
    """Return the zero-shot calibration that the package contains for an embedded encoder.

    Args:
        encoder: Any encoder.
        templates: Prompt templates of the scores, ``one`` or ``ensemble``.

    Returns:
        ``calibrator``, ``state`` and ``about``; None for other encoders and other templates.

    Raises:
        DataError: If the calibration was fitted for other weights.
    """
    if encoder.name not in ENCODERS or not isinstance(templates, str):
        return None
    file = files("surelabel.encoders").joinpath("weights", f"{encoder.name}.calibration.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    if stored["fingerprint"] != encoder.fingerprint:
        raise DataError(
            f"{encoder.name}.calibration.json must be fitted for the weights "
            f"{encoder.fingerprint} of this encoder; it was fitted for {stored['fingerprint']}. "
            f"Run python training/default_calibration.py {encoder.name}."
        )
    calibration: dict[str, Any] | None = stored["templates"].get(templates)
    return calibration


def load_saved_embedded(folder: Path, manifest: dict[str, Any], device: str) -> OpenClipEncoder:
    """Load the embedded encoder that a manifest names, at the image size of the manifest.

    Args:
        folder: Folder of the manifest, for messages.
        manifest: Content of the manifest, with ``embedded`` and ``size``.
        device: Device of the encoder.

    Raises:
        DataError: If the package does not contain the encoder.
    """
    name = manifest["embedded"]
    if name not in ENCODERS:
        raise DataError(
            f"{folder} must name one of {', '.join(ENCODERS)} as embedded; got {manifest}. "
            "Install the version of surelabel that wrote it."
        )
    encoder = ENCODERS[name](device=device)
    return encoder.with_image_size(manifest.get("size", encoder.input_side))
