"""From an upright RGB picture to what a tower takes: resize, crop or squash, normalise."""

import math
from collections.abc import Mapping
from typing import Any

from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes

NEEDED = ("mean", "std", "interpolation", "resize_mode")
CHOICES = {
    "interpolation": ("bicubic", "bilinear"),
    "resize_mode": ("shortest", "longest", "squash"),
}
COVERS = {"squash": "whole", "shortest": "middle", "longest": "padded"}
LARGEST_SIDE = 8192  # of what a tower takes, in pixels
OBLONG = 8  # how many times the size a long side may be once it is resized
LIKE_CLIP = (
    '"preprocess_cfg": {"mean": [0.48145466, 0.4578275, 0.40821073], '
    '"std": [0.26862954, 0.26130258, 0.27577711], '
    '"interpolation": "bicubic", "resize_mode": "shortest"}'
)


class Preparation:
    """Prepare pictures as the settings of a checkpoint say. Small, so that workers can hold it.

    Args:
        settings: ``size`` (down and across), ``mean``, ``std``, ``interpolation``,
                ``resize_mode`` and ``fill_color``, as open_clip names them.

    Differs:
        With ``resize_mode`` ``shortest``, open_clip enlarges the whole picture before it crops the
        middle, which takes gigabytes for 20,000 by 2 pixels. Where the long side would become more
        than 8 times the size, its ends are cut off before; all other pictures come out the same,
        bit for bit.

    Example:
        >>> settings = {"size": 8, "mean": [0.5] * 3, "std": [0.25] * 3,
        ...             "interpolation": "bicubic", "resize_mode": "squash"}
        >>> Preparation(settings)(Image.new("RGB", (30, 20), "white"))[:, 0, 0]
        tensor([2., 2., 2.])
    """

    def __init__(self, settings: Mapping[str, Any]):
        known = PreprocessCfg.__dataclass_fields__
        chosen = PreprocessCfg(**{k: v for k, v in settings.items() if k in known})
        down, across = (chosen.size,) * 2 if isinstance(chosen.size, int) else chosen.size
        self.settings = {
            "size": [down, across],
            "mean": list(chosen.mean),
            "std": list(chosen.std),
            "interpolation": chosen.interpolation,
            "resize_mode": chosen.resize_mode,
            "fill_color": chosen.fill_color,
        }
        chosen.size = (down, across)
        self._transform = image_transform_v2(chosen, is_train=False)

    def __call__(self, picture: Image.Image) -> Tensor:
        """One upright RGB picture, resized and normalised, ``(3, h, w)``."""
        if self.settings["resize_mode"] == "shortest":
            picture = _without_far_ends(picture, *self.settings["size"])
        pixels: Tensor = self._transform(picture)
        return pixels

    @property
    def least_side(self) -> int:
        """Shorter side below which a picture would have to be enlarged, in pixels."""
        return int(max(self.settings["size"]))

    @property
    def cover(self) -> str:
        """What of an oblong picture is seen: ``whole``, ``middle``, or ``padded`` with margins."""
        return COVERS[self.settings["resize_mode"]]

    def checked(self, pixels: Tensor) -> Tensor:
        """The same prepared pictures ``(n, 3, h, w)``.

        Raises:
            InputError: they have another size than this prepares.
        """
        check_shapes(pixels=(pixels, "n rgb h w"))
        wanted = (3, *self.settings["size"])
        if tuple(pixels.shape[1:]) != wanted:
            raise InputError(
                f"pixels must be pictures prepared by this backbone, (n, {wanted[0]}, {wanted[1]}, "
                f"{wanted[2]}). Got {tuple(pixels.shape)}; prepare them with its prepare()."
            )
        return pixels


def _without_far_ends(picture: Image.Image, down: int, across: int) -> Image.Image:
    """The middle of a very oblong picture: far more than the crop after resizing leaves."""
    scale = max(across / picture.width, down / picture.height)
    left = max(0, int(picture.width - OBLONG * across / scale) // 2)
    top = max(0, int(picture.height - OBLONG * down / scale) // 2)
    if not left and not top:
        return picture
    return picture.crop((left, top, picture.width - left, picture.height - top))


def check_complete(settings: Any, where: str) -> None:
    """Refuse preprocessing settings that leave something to guess.

    Raises:
        ConfigError: there are none, one is missing, or has a value that nobody can use.
    """
    if not isinstance(settings, Mapping):
        raise ConfigError(
            f"{where} must hold preprocess_cfg, an object with {', '.join(NEEDED)}. "
            f"Got {settings!r}; the CLIP of OpenAI has {LIKE_CLIP}."
        )
    missing = [key for key in NEEDED if settings.get(key) is None]
    if missing:
        raise ConfigError(
            f"{where} must say how pictures are prepared; its preprocess_cfg lacks "
            f"{', '.join(missing)}. Nothing is guessed: copy the values the weights were trained "
            f"with (the CLIP of OpenAI has {LIKE_CLIP})."
        )
    for key, choices in CHOICES.items():
        if settings[key] not in choices:
            raise ConfigError(
                f"{key} in {where} must be one of {', '.join(choices)}. Got {settings[key]!r}."
            )
    for key, least, above in (("mean", -math.inf, ""), ("std", 0, " above 0")):
        if not _three_numbers(settings[key], above=least):
            raise ConfigError(
                f"{key} in {where} must be three numbers{above}: red, green, blue. "
                f"Got {settings[key]!r}."
            )


def _three_numbers(value: Any, *, above: float) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 3
        and all(isinstance(v, int | float) and not isinstance(v, bool) for v in value)
        and all(above < v < math.inf for v in value)
    )
