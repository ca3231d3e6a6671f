"""Read and write the JSON manifest of a saved encoder."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surelabel.errors import DataError
from surelabel.file_readers import read_json
from surelabel.tables import table_entry_settings

MANIFEST_FILE = "surelabel_encoder.json"


def write_encoder_manifest(
    folder: Path, kind: str, source: Any, fingerprint: str, **fields: Any
) -> None:
    """Write the manifest of a saved encoder.

    Args:
        folder: Folder of the saved encoder.
        kind: Kind of encoder: ``embedded``, ``exported``, ``features``, ``onnx``, ``quantized``,
            ``scores``, ``timm`` or ``transformers``.
        source: Name of the embedded encoder, name of the exported file, width of the features, file
            name of the ONNX graph, list of quantized models, kind of scores, timm architecture, or
            model type of transformers.
        fingerprint: Fingerprint of the encoder. ``load_encoder`` compares this value with the
            fingerprint of the loaded encoder.
        fields: Other values that are needed to load the encoder, such as ``settings``.
    """
    manifest = {kind: source, **fields, "fingerprint": fingerprint}
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def encoder_manifest_settings(
    loader: Callable[..., Any], manifest: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return the settings in an encoder manifest, and check that the loader accepts them.

    Args:
        loader: Function that loads an encoder with the settings.
        manifest: Content of the manifest.
        folder: Folder of the saved encoder, for error messages.

    Raises:
        DataError: If the manifest contains no settings, or a setting that the loader does not
            accept.
    """
    stored = manifest.get("settings")
    if not isinstance(stored, dict) or not stored.keys() <= table_entry_settings(loader).keys():
        raise DataError(
            f"{folder / MANIFEST_FILE} must contain settings with keys from "
            f"{', '.join(table_entry_settings(loader))}; got {stored!r}. Copy the whole folder "
            "again, or save the encoder again."
        )
    return stored


def read_encoder_json_object(file: Path) -> dict[str, Any]:
    """Return the content of a JSON file of an encoder, which must be a JSON object.

    Raises:
        DataError: If the file cannot be read, or does not contain a JSON object.
    """
    content = read_json(file, kind="a JSON file")
    if not isinstance(content, dict):
        raise DataError(
            f"{file} must contain a JSON object; got {type(content).__name__}. Copy the file again."
        )
    return content
