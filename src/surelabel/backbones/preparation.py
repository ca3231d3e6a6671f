"""From an upright RGB picture to what a tower takes: resize, crop or squash, normalise."""

from collections.abc import Mapping
from typing import Any

from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from torch import Tensor

from surelabel.errors import ConfigError

NEEDED = ("mean", "std", "interpolation", "resize_mode")
CHOICES = {
    "interpolation": ("bicubic", "bilinear"),
    "resize_mode": ("shortest", "longest", "squash"),
}
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
        pixels: Tensor = self._transform(picture)
        return pixels


def check_complete(settings: Mapping[str, Any], where: str) -> None:
    """Refuse preprocessing settings that leave something to guess.

    Raises:
        ConfigError: one is missing, or has a value that nobody knows.
    """
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
    for key in ("mean", "std"):
        value = settings[key]
        if not isinstance(value, list | tuple) or len(value) != 3:
            raise ConfigError(
                f"{key} in {where} must be three numbers: red, green, blue. Got {value!r}."
            )
