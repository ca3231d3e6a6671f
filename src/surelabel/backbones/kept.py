"""The JSON file beside the weights of a saved encoder that says what they are."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surelabel.errors import DataError
from surelabel.tables import settings

KEPT_FILE = "surelabel_backbone.json"


def write_about(folder: Path, kind: str, what: Any, fingerprint: str, **more: Any) -> None:
    """Write what an encoder is into the folder that holds the rest of it.

    Args:
        folder: Of the encoder.
        kind: ``embedded``, ``features``, ``onnx`` or ``timm``.
        what: Which of that kind.
        fingerprint: Of the encoder, compared when it is loaded again.
        more: What else loading it takes.
    """
    about = {kind: what, **more, "fingerprint": fingerprint}
    (folder / KEPT_FILE).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def kept_settings(
    entry: Callable[..., Any], about: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """The settings that a saved encoder states, all of which ``entry`` has.

    Args:
        entry: What makes an encoder of that kind.
        about: What ``write_about`` wrote.
        folder: Where it stands, for messages.

    Raises:
        DataError: there are none, or others.
    """
    found = about.get("settings")
    if not isinstance(found, dict) or not found.keys() <= settings(entry).keys():
        raise DataError(
            f"{folder / KEPT_FILE} must hold settings with {', '.join(settings(entry))}. Got "
            f"{found!r}. Copy the whole folder again, or save the encoder anew."
        )
    return found


def read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        DataError: it cannot be read, or holds something else.
    """
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as JSON: {error}. Copy it again.") from error
    if not isinstance(about, dict):
        raise DataError(f"{file} must hold a JSON object. Got {type(about).__name__}.")
    return about
