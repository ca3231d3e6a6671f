"""Read and write the JSON manifest of a saved encoder."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surelabel.errors import DataError
from surelabel.tables import settings

MANIFEST_FILE = "surelabel_encoder.json"


def write_manifest(folder: Path, kind: str, source: Any, fingerprint: str, **fields: Any) -> None:
    """Write the manifest of an encoder into its folder.

    Args:
        folder: Folder of the saved encoder.
        kind: ``embedded``, ``features``, ``onnx`` or ``timm``.
        source: Name of the embedded encoder, width of the features, file name of the ONNX graph,
            or timm architecture.
        fingerprint: Fingerprint of the encoder, compared when it is loaded.
        fields: Other values that the loader of this kind needs, such as ``settings``.
    """
    manifest = {kind: source, **fields, "fingerprint": fingerprint}
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def manifest_settings(
    loader: Callable[..., Any], manifest: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Return the settings in a manifest after a check that the loader has them.

    Args:
        loader: Function that builds an encoder of this kind.
        manifest: Content of the manifest.
        folder: Folder of the saved encoder, for messages.

    Raises:
        DataError: If the manifest has no settings, or the loader does not have one of them.
    """
    stored = manifest.get("settings")
    if not isinstance(stored, dict) or not stored.keys() <= settings(loader).keys():
        raise DataError(
            f"{folder / MANIFEST_FILE} must contain settings with keys from "
            f"{', '.join(settings(loader))}; got {stored!r}. Copy the whole folder again, or save "
            "the encoder again."
        )
    return stored


def read_json_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        DataError: If the file cannot be read, or does not contain a JSON object.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} must be a JSON file; got: {error}. Copy it again.") from error
    if not isinstance(content, dict):
        raise DataError(
            f"{file} must contain a JSON object; got {type(content).__name__}. Copy it again."
        )
    return content
