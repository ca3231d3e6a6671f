"""Read and check the configuration file of an open_clip checkpoint."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surelabel.encoders.image_inputs.preprocessing import check_preprocess_cfg
from surelabel.encoders.loading.encoder_manifest import read_encoder_json_object
from surelabel.encoders.open_clip.architecture_settings import check_open_clip_architecture_settings
from surelabel.errors import ConfigError, DataError
from surelabel.file_readers import quote_of_file

CONFIG_KEYS = ("model_cfg", "preprocess_cfg")
OPEN_CLIP_DEFAULTS = {"interpolation": "bicubic", "resize_mode": "shortest"}
PREPROCESS_KEYS = ("fill_color", "interpolation", "mean", "mode", "resize_mode", "size", "std")


def read_open_clip_checkpoint_config(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the configuration file of a checkpoint, and check all settings.

    Args:
        file: ``open_clip_config.json`` of the checkpoint.

    Returns:
        The ``model_cfg``, and the complete ``preprocess_cfg`` without the image size.

    Raises:
        DataError: If the file is missing or damaged.
        ConfigError: If a setting is missing, unknown or invalid.
    """
    content = read_encoder_json_object(file)
    _check_open_clip_checkpoint_keys(content, CONFIG_KEYS, str(file))
    model_cfg = _require_open_clip_checkpoint_object(content, "model_cfg", file)
    for tower in ("vision_cfg", "text_cfg"):
        _require_open_clip_checkpoint_object(model_cfg, tower, file)
    check_open_clip_architecture_settings(model_cfg, str(file))
    preprocess_cfg = complete_open_clip_preprocess_config(
        content.get("preprocess_cfg", {}), str(file)
    )
    return model_cfg, {key: value for key, value in preprocess_cfg.items() if key != "size"}


def complete_open_clip_preprocess_config(settings: Any, source: str) -> dict[str, Any]:
    """Return the preprocessing settings of a file with the defaults of open_clip.

    If ``mean`` and ``std`` are given, a missing ``interpolation`` is ``bicubic``, and a missing
    ``resize_mode`` is ``shortest``, with a warning. Other settings have no defaults.

    Args:
        settings: Preprocessing settings, the ``preprocess_cfg`` of open_clip.
        source: Name of the file, for error messages.

    Raises:
        ConfigError: If a setting is missing, unknown or invalid.
    """
    given = dict(settings) if isinstance(settings, Mapping) else {}
    missing = [key for key in OPEN_CLIP_DEFAULTS if given.get(key) is None]
    if missing and given.get("mean") is not None and given.get("std") is not None:
        settings = given = {**given, **{key: OPEN_CLIP_DEFAULTS[key] for key in missing}}
        warnings.warn(
            f"preprocess_cfg in {source} contains no {' and no '.join(missing)}. The defaults of "
            f"open_clip are used: {', '.join(OPEN_CLIP_DEFAULTS[key] for key in missing)}.",
            stacklevel=2,
        )
    check_preprocess_cfg(settings, source)
    _check_open_clip_checkpoint_keys(settings, PREPROCESS_KEYS, f"preprocess_cfg in {source}")
    return given


def _check_open_clip_checkpoint_keys(
    settings: Mapping[str, Any], keys: Sequence[str], source: str
) -> None:
    unknown = sorted(settings.keys() - set(keys))
    if unknown:
        raise ConfigError(
            f"{source} must contain keys from {', '.join(keys)}; got {quote_of_file(unknown[0])}. "
            "Remove the key, or copy the file that belongs to the weights."
        )


def _require_open_clip_checkpoint_object(
    content: dict[str, Any], key: str, file: Path
) -> dict[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        raise DataError(
            f"{file} must contain {key}, an object that describes the architecture; "
            f"got {value!r}. Copy the file that belongs to the weights."
        )
    return value
