"""Table of the encoders in the package, and calibration of the zero-shot scores of an encoder."""

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
    """Return the calibration of the zero-shot scores of an embedded encoder.

    Args:
        encoder: Encoder of the package, or any other encoder.
        templates: Name of the prompt templates of the zero-shot scores, ``one`` or ``ensemble``.

    Returns:
        Dict with ``calibrator``, ``state`` and ``about``. If the package contains no calibration
        for the encoder and the templates, None is returned.

    Raises:
        DataError: If the calibration was fitted for weights of another fingerprint.
    """
    if encoder.name not in ENCODERS or not isinstance(templates, str):
        return None
    file = files("surelabel.encoders").joinpath("weights", f"{encoder.name}.calibration.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    if stored["fingerprint"] != encoder.fingerprint:
        raise DataError(
            f"{encoder.name}.calibration.json must be fitted for the weights "
            f"{encoder.fingerprint} of this encoder, not for {stored['fingerprint']}. "
            f"Run python training/default_calibration.py {encoder.name}."
        )
    calibration: dict[str, Any] | None = stored["templates"].get(templates)
    return calibration


def load_saved_embedded_encoder(
    folder: Path, manifest: dict[str, Any], device: str
) -> OpenClipEncoder:
    """Load the embedded encoder with the name and the image size in a manifest.

    Args:
        folder: Folder of the manifest, for error messages.
        manifest: Content of the manifest, with the keys ``embedded`` and ``size``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If the package does not contain the encoder.
    """
    name = manifest["embedded"]
    if name not in ENCODERS:
        raise DataError(
            f"The manifest in {folder} must contain one of {', '.join(ENCODERS)} as embedded; "
            f"got {manifest}. Install the version of surelabel that wrote the manifest."
        )
    encoder = ENCODERS[name](device=device)
    return encoder.with_image_size(manifest.get("size", encoder.input_side))
