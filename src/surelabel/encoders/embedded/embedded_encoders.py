"""Load embedded encoders, whose weights are in the package, and their zero-shot calibration."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from surelabel.encoders.image_inputs.preprocessing import MAX_SIDE
from surelabel.encoders.interface import Encoder
from surelabel.encoders.open_clip.encoder import OpenClipEncoder
from surelabel.encoders.tiny_rn import tiny_rn
from surelabel.encoders.tiny_vit import tiny_vit
from surelabel.errors import DataError
from surelabel.file_readers import parse_json, quote_of_file

ENCODERS = {"tiny-rn": tiny_rn, "tiny-vit": tiny_vit}


def embedded_calibration(
    encoder: Encoder, *, templates: str | Sequence[str] = "one"
) -> dict[str, Any] | None:
    """Return the calibration of zero-shot scores that the package contains for an encoder.

    Args:
        encoder: Any encoder. Only embedded encoders at their default image size have a calibration.
        templates: Name of the prompt templates of the zero-shot scores, ``one`` or ``ensemble``.
            Other templates have no calibration.

    Returns:
        Dict with the name of the ``calibrator``, its fitted parameters (``state``), and a
        description of the fit (``about``). If the package contains no calibration for the encoder,
        its image size and the templates, None is returned.

    Raises:
        DataError: If the calibration was fitted for weights with another fingerprint.
    """
    if encoder.name not in ENCODERS or not isinstance(templates, str):
        return None
    folder = files("surelabel.encoders").joinpath("weights")
    description = parse_json(folder.joinpath(f"{encoder.name}.json").read_text(encoding="utf-8"))
    side = description["model_cfg"]["vision_cfg"]["image_size"]
    if encoder.preprocess_cfg["size"] != [side, side]:
        return None
    file = folder.joinpath(f"{encoder.name}.calibration.json")
    stored = parse_json(file.read_text(encoding="utf-8"))
    if stored["fingerprint"] != encoder.fingerprint:
        raise DataError(
            f"The calibration in {encoder.name}.calibration.json must have the fingerprint of the "
            f"weights, {encoder.fingerprint}; got {stored['fingerprint']}. "
            f"Run python training/default_calibration.py {encoder.name}."
        )
    calibration: dict[str, Any] | None = stored["templates"].get(templates)
    return calibration


def load_saved_embedded_encoder(
    folder: Path, manifest: dict[str, Any], device: str
) -> OpenClipEncoder:
    """Load the embedded encoder whose name and image size are in a manifest.

    Args:
        folder: Folder of the manifest, for error messages.
        manifest: Content of the manifest, with the keys ``embedded`` and ``size``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If the package contains no encoder with the name in the manifest, or the size
            in the manifest is out of range.
    """
    name = manifest["embedded"]
    if not isinstance(name, str) or name not in ENCODERS:
        raise DataError(
            f'The key "embedded" of the manifest in {folder} must be the name of an encoder '
            f"({', '.join(ENCODERS)}); got {manifest}. Install the version of surelabel that wrote "
            "the manifest."
        )
    encoder = ENCODERS[name](device=device)
    size = manifest.get("size", encoder.input_side)
    if type(size) is not int or not 1 <= size <= MAX_SIDE:
        raise DataError(
            f'The key "size" of the manifest in {folder} must be the image side, 1 to {MAX_SIDE} '
            f"pixels; got {quote_of_file(size)}. Copy the whole folder again."
        )
    return encoder.with_image_size(size)
