"""Preprocess images with the settings of an image processor of transformers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from open_clip import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD

from surelabel.encoders.image_inputs.preprocessing import (
    ImagePreprocessor,
    check_preprocess_cfg,
)
from surelabel.encoders.loading.encoder_manifest import read_encoder_json_object
from surelabel.encoders.transformers.naflex import NaflexPreprocessor
from surelabel.errors import ConfigError
from surelabel.file_readers import quote_of_file

PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
INTERPOLATIONS = {2: "bilinear", 3: "bicubic"}  # Image.Resampling: name
CLIP_PROCESSOR = {
    "size": {"shortest_edge": 224},
    "crop_size": {"height": 224, "width": 224},
    "do_center_crop": True,
    "resample": 3,
    "image_mean": [*OPENAI_DATASET_MEAN],
    "image_std": [*OPENAI_DATASET_STD],
}
DEFAULTS: dict[str, dict[str, Any]] = {  # default settings of the processor classes, by model type
    "clip": CLIP_PROCESSOR,
    "metaclip_2": CLIP_PROCESSOR,
    "siglip": {
        "size": {"height": 224, "width": 224},
        "resample": 3,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    },
    "siglip2": {
        "resample": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "patch_size": 16,
        "max_num_patches": 256,
    },
    "tipsv2": {"size": {"height": 448, "width": 448}, "resample": 2, "do_normalize": False},
}
FIXED_SETTINGS = {"do_rescale": True, "rescale_factor": 1 / 255, "do_resize": True}


def read_transformers_image_processor(
    file: Path, model_type: str
) -> ImagePreprocessor | NaflexPreprocessor:
    """Return the preprocessing that a file of transformers describes.

    The pixels are equal to the pixels of the transformers processors that use Pillow.

    Args:
        file: ``preprocessor_config.json``, or ``processor_config.json`` with the section
            ``image_processor``.
        model_type: Kind of model. Its processor class defines the values of missing settings.

    Raises:
        DataError: If the file is missing or damaged.
        ConfigError: If a setting is invalid or not supported.

    Differs:
        If the margin of a center crop is an odd number of pixels, the crop of transformers can be
        one pixel further left or higher. Long images are cropped as in :class:`ImagePreprocessor`.
    """
    content = read_encoder_json_object(file)
    section = content.get("image_processor", content)
    if not isinstance(section, Mapping):
        raise _processor_error(file, "image_processor", "an object", section)
    given = {key: value for key, value in section.items() if value is not None}
    settings = {"do_normalize": True, **FIXED_SETTINGS, **DEFAULTS[model_type], **given}
    for key, value in FIXED_SETTINGS.items():
        if settings[key] != value and not _is_close(settings[key], value):
            raise _processor_error(file, key, str(value), settings[key])
    preprocess_cfg = {
        "mean": settings["image_mean"] if settings["do_normalize"] else [0.0] * 3,
        "std": settings["image_std"] if settings["do_normalize"] else [1.0] * 3,
        "interpolation": INTERPOLATIONS.get(settings["resample"], settings["resample"]),
    }
    if model_type == "siglip2":
        check_preprocess_cfg({**preprocess_cfg, "resize_mode": "squash"}, str(file))
        return NaflexPreprocessor(
            preprocess_cfg,
            patch_size=_side(settings["patch_size"], "patch_size", file),
            max_num_patches=_side(settings["max_num_patches"], "max_num_patches", file),
        )
    preprocess_cfg.update(_size_and_resize_mode(settings, file))
    check_preprocess_cfg(preprocess_cfg, str(file))
    return ImagePreprocessor(preprocess_cfg)


def image_processor_settings(
    preprocess: ImagePreprocessor | NaflexPreprocessor,
) -> dict[str, Any]:
    """Return the content of ``preprocessor_config.json`` for a preprocessing."""
    cfg = preprocess.settings
    resample = next(key for key, name in INTERPOLATIONS.items() if name == cfg["interpolation"])
    settings = {"image_mean": cfg["mean"], "image_std": cfg["std"], "resample": resample}
    if isinstance(preprocess, NaflexPreprocessor):
        sides = {key: cfg[key] for key in ("patch_size", "max_num_patches")}
        return {**settings, **sides}
    height, width = cfg["size"]
    if cfg["resize_mode"] == "squash":
        return {**settings, "size": {"height": height, "width": width}, "do_center_crop": False}
    crop = {"height": height, "width": width}
    return {
        **settings,
        "size": {"shortest_edge": min(height, width)},
        "crop_size": crop,
        "do_center_crop": True,
    }


def _size_and_resize_mode(settings: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the image size and the resize mode of a processor of square or cropped images.

    Raises:
        ConfigError: If the crop size is not equal to the size after resizing.
    """
    size, crop = settings["size"], settings.get("crop_size")
    if isinstance(size, int):
        size = {"shortest_edge": size} if settings.get("do_center_crop") else _square(size)
    crop = _square(crop) if isinstance(crop, int) else crop
    if not isinstance(size, Mapping):
        raise _processor_error(file, "size", "an object with height and width", size)
    if "shortest_edge" not in size:
        sides = [_side(size.get(key), f"{key} of size", file) for key in ("height", "width")]
        if settings.get("do_center_crop") and crop not in (None, _rectangle(*sides)):
            raise _processor_error(file, "crop_size", f"equal to size {sides}", crop)
        return {"size": sides, "resize_mode": "squash"}
    side = _side(size["shortest_edge"], "shortest_edge of size", file)
    if not settings.get("do_center_crop") or crop != _square(side):
        raise _processor_error(file, "crop_size", f"a square of {side} pixels, as size", crop)
    return {"size": [side, side], "resize_mode": "shortest"}


def _square(side: int) -> dict[str, int]:
    return _rectangle(side, side)


def _rectangle(height: int, width: int) -> dict[str, int]:
    return {"height": height, "width": width}


def _side(value: Any, key: str, file: Path) -> int:
    if type(value) is not int or not 1 <= value <= 8192:
        raise _processor_error(file, key, "an integer from 1 to 8192", value)
    return value


def _is_close(value: Any, expected: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and not isinstance(expected, bool) and abs(value - expected) < 1e-6


def _processor_error(file: Path, key: str, expected: str, value: Any) -> ConfigError:
    return ConfigError(
        f"{key} in {file} must be {expected}; got {quote_of_file(value)}. This preprocessing is "
        "not supported. Use another model."
    )
