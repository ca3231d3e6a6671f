"""Preprocess upright RGB images for an image tower: resize, crop or pad, and normalize."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes

REQUIRED_KEYS = ("mean", "std", "interpolation", "resize_mode")
ALLOWED_VALUES = {
    "interpolation": ("bicubic", "bilinear"),
    "resize_mode": ("shortest", "longest", "squash"),
}
N_STEPS_AFTER_RESIZING = 2  # of open_clip: the conversion to a tensor, and the normalization
CROP_MODES = {"squash": "squash", "shortest": "center", "longest": "border"}  # as in timm
MAX_SIDE = 8192  # largest input side of an image tower, in pixels
MAX_ASPECT_RATIO = 8  # longer sides are cropped before resizing, in multiples of the input size
OPENAI_CLIP_EXAMPLE = (
    '"preprocess_cfg": {"mean": [0.48145466, 0.4578275, 0.40821073], '
    '"std": [0.26862954, 0.26130258, 0.27577711], '
    '"interpolation": "bicubic", "resize_mode": "shortest"}'
)


class ImagePreprocessor:
    """Image preprocessing of a checkpoint. The object can be pickled for data workers.

    Args:
        settings: Preprocessing settings as in the ``preprocess_cfg`` of open_clip. The keys are
            ``size`` (height and width in pixels, or the side of square images), ``mean``, ``std``,
            ``interpolation``, ``resize_mode`` and ``fill_color`` (color of the padding).

    Differs:
        If ``resize_mode`` is ``shortest``, open_clip resizes the whole image before the center
        crop, which needs gigabytes of memory for an image of 20,000 by 2 pixels. Here, if a side of
        the resized image would exceed 8 times the input size, the image is cropped before resizing.
        If ``resize_mode`` is ``longest``, open_clip raises an error if the shorter side would have
        half a pixel or less after resizing. Here, the image is cropped so that this side has one
        pixel. All other images are preprocessed as in open_clip.

    Example:
        >>> settings = {"size": 8, "mean": [0.5] * 3, "std": [0.25] * 3,
        ...             "interpolation": "bicubic", "resize_mode": "squash"}
        >>> ImagePreprocessor(settings)(Image.new("RGB", (30, 20), "white"))[:, 0, 0]
        tensor([2., 2., 2.])
    """

    def __init__(self, settings: Mapping[str, Any]):
        fields = PreprocessCfg.__dataclass_fields__
        cfg = PreprocessCfg(**{k: v for k, v in settings.items() if k in fields})
        height, width = (cfg.size,) * 2 if isinstance(cfg.size, int) else cfg.size
        self.settings = {
            "size": [height, width],
            "mean": list(cfg.mean),
            "std": list(cfg.std),
            "interpolation": cfg.interpolation,
            "resize_mode": cfg.resize_mode,
            "fill_color": cfg.fill_color,
        }
        cfg.size = (height, width)
        self._transform = image_transform_v2(cfg, is_train=False)

    def __call__(self, image: Image.Image) -> Tensor:
        """Return the resized and normalized pixels of an upright RGB image, ``(3, h, w)``."""
        image = self._crop_long_image(image)
        pixels: Tensor = self._transform(image)
        return pixels

    def resize(self, image: Image.Image) -> npt.NDArray[np.uint8]:
        """Return the resized pixels of an upright RGB image, ``(h, w, 3)``.

        Resized pixels take a quarter of the memory of normalized pixels. :meth:`normalize` computes
        the normalized pixels of many images at once, which takes less time than one by one.
        """
        image = self._crop_long_image(image)
        for step in self._transform.transforms[:-N_STEPS_AFTER_RESIZING]:
            image = step(image)
        return np.asarray(image)

    def normalize(self, pixels: npt.NDArray[np.generic]) -> Tensor:
        """Return the normalized pixels ``(n, 3, h, w)`` of resized images ``(n, h, w, 3)``.

        The result is bitwise equal to the normalized pixels that a call of this object returns.
        """
        mean, std = (torch.tensor(self.settings[key])[:, None, None] for key in ("mean", "std"))
        values = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous().float()
        return values.div_(255).sub_(mean).div_(std)

    def _crop_long_image(self, image: Image.Image) -> Image.Image:
        """Crop the ends of an image that is too long to be resized."""
        height, width = self.settings["size"]
        if self.settings["resize_mode"] == "shortest":
            scale = max(width / image.width, height / image.height)
            max_width, max_height = (MAX_ASPECT_RATIO * side / scale for side in (width, height))
        elif self.settings["resize_mode"] == "longest":
            # open_clip rounds: a side of more than half a pixel becomes one pixel
            max_width, max_height = 2 * width * image.height - 2, 2 * height * image.width - 2
        else:
            return image
        left = max(0, int(image.width - max_width) // 2)
        top = max(0, int(image.height - max_height) // 2)
        if not left and not top:
            return image
        edges = (left, top, image.width - left, image.height - top)
        size = (edges[2] - left, edges[3] - top)
        # Image.crop raises an error if Pillow's global limit of pixels is exceeded
        return image.transform(size, Image.Transform.EXTENT, edges)

    def with_size(self, size: int) -> "ImagePreprocessor":
        """Return the preprocessing for images of ``size`` by ``size`` pixels."""
        return ImagePreprocessor({**self.settings, "size": [size, size]})

    @property
    def input_side(self) -> int:
        """Return the larger side of the preprocessed images, in pixels."""
        return int(max(self.settings["size"]))

    @property
    def crop_mode(self) -> str:
        """Return the crop mode of the preprocessing by its name in timm.

        Returns:
            ``squash`` if both sides are resized independently, ``center`` if the image is
            center-cropped, or ``border`` if the image is padded.
        """
        return CROP_MODES[self.settings["resize_mode"]]

    def check_pixels(self, pixels: Tensor) -> Tensor:
        """Check the shape of preprocessed images ``(n, 3, h, w)``, and return the images.

        Raises:
            InputError: If the shape is not ``(n, 3, h, w)``, with the height ``h`` and the width
                ``w`` in the preprocessing settings.
        """
        check_shapes(pixels=(pixels, "n rgb h w"))
        expected = (3, *self.settings["size"])
        if tuple(pixels.shape[1:]) != expected:
            raise InputError(
                f"pixels for this encoder must be preprocessed images of shape (n, {expected[0]}, "
                f"{expected[1]}, {expected[2]}); got {tuple(pixels.shape)}. Use preprocess() of "
                "the encoder."
            )
        return pixels


def check_preprocess_cfg(settings: Any, source: str) -> None:
    """Check that the preprocessing settings of a checkpoint are complete and valid.

    Args:
        settings: Preprocessing settings of the checkpoint, with the keys of the ``preprocess_cfg``
            of open_clip.
        source: Name of the file or encoder that contains the settings, for error messages.

    Raises:
        ConfigError: If ``settings`` is not a mapping, or if a setting is missing or invalid.
    """
    if not isinstance(settings, Mapping):
        raise ConfigError(
            f"{source} must contain preprocess_cfg, an object with {', '.join(REQUIRED_KEYS)}; "
            f"got {settings!r}. Add the values with which the weights were trained. The CLIP "
            f"models of OpenAI use {OPENAI_CLIP_EXAMPLE}."
        )
    missing = [key for key in REQUIRED_KEYS if settings.get(key) is None]
    if missing:
        raise ConfigError(
            f"preprocess_cfg in {source} must contain {', '.join(REQUIRED_KEYS)}; "
            f"got no {', '.join(missing)}. Add the values with which the weights were "
            f"trained. The CLIP models of OpenAI use {OPENAI_CLIP_EXAMPLE}."
        )
    for key, choices in ALLOWED_VALUES.items():
        if settings[key] not in choices:
            raise ConfigError(
                f"{key} in {source} must be one of {', '.join(choices)}; got {settings[key]!r}."
            )
    for key, minimum, condition in (("mean", -math.inf, ""), ("std", 0, " above 0")):
        if not _is_preprocessing_rgb_triple(settings[key], above=minimum):
            raise ConfigError(
                f"{key} in {source} must be three numbers{condition} (red, green, blue); "
                f"got {settings[key]!r}."
            )
    for key, (expected, accepts) in OPTIONAL_VALUES.items():
        if settings.get(key) is not None and not accepts(settings[key]):
            raise ConfigError(f"{key} in {source} must be {expected}; got {settings[key]!r}.")


def _is_preprocessing_size(value: Any) -> bool:
    sides = value if isinstance(value, list | tuple) and len(value) == 2 else [value]
    return all(type(side) is int and 1 <= side <= MAX_SIDE for side in sides)


def _is_preprocessing_rgb_triple(value: Any, *, above: float) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 3
        and all(isinstance(v, int | float) and not isinstance(v, bool) for v in value)
        and all(above < v < math.inf for v in value)
    )


OPTIONAL_VALUES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "fill_color": ("an integer from 0 to 255", lambda v: type(v) is int and 0 <= v <= 255),
    "mode": ("RGB", lambda v: v == "RGB"),
    "size": (f"the side or [height, width], from 1 to {MAX_SIDE} pixels", _is_preprocessing_size),
}
