"""The stand-in for an encoder where the vectors of the pictures are ready-made."""

import hashlib
from pathlib import Path
from typing import Any, Self

from PIL import Image
from torch import Tensor

from surelabel.backbones.kept import write_about
from surelabel.backbones.pictures_only import WithoutTexts
from surelabel.errors import ConfigError, DataError
from surelabel.files import new_folder
from surelabel.records import Features

LARGEST = 2**20


class Arrays(WithoutTexts):
    """No encoder at all: a width, so that methods know what they get.

    Args:
        width: Size ``d`` of the vectors.

    Example:
        >>> Arrays(1280).name
        'features:1280'
    """

    cover = "whole"

    def __init__(self, width: int):
        super().__init__(f"features:{width}")
        self.width, self.preprocess = width, {}
        self.fingerprint = hashlib.sha256(self.name.encode()).hexdigest()[:16]

    @property
    def least_side(self) -> int:
        """Raise ConfigError: it takes no pictures."""
        raise self._no_pictures()

    def prepare(self, picture: Image.Image) -> Tensor:
        """Raise ConfigError: it takes no pictures."""
        raise self._no_pictures()

    def images(self, pixels: Tensor) -> Features:
        """Raise ConfigError: it takes no pictures."""
        raise self._no_pictures()

    def at(self, size: int) -> Self:
        """Raise ConfigError: it takes no pictures."""
        raise self._no_pictures()

    def save(self, folder: Path) -> None:
        """Write the width; ``local-dir:`` loads it again.

        Raises:
            DataError: the folder cannot be written.
        """
        with new_folder(folder) as new:
            write_about(new, "features", self.width, self.fingerprint)

    def _no_pictures(self) -> ConfigError:
        return ConfigError(
            f"{self.name} takes ready-made vectors of {self.width} numbers and no pictures: give "
            "it LabelledFeatures, or take the encoder that made the vectors."
        )


def arrays(width: str, device: str) -> Arrays:
    """The stand-in for vectors of ``width`` numbers; no device is needed.

    Raises:
        ConfigError: ``width`` is no whole number of 1 or more.

    Example:
        >>> arrays("64", "cpu").width
        64
    """
    digits = width.isascii() and width.isdigit() and len(width) <= len(str(LARGEST))
    if not digits or not 1 <= int(width) <= LARGEST:
        raise ConfigError(
            f"features:WIDTH needs the length of the vectors, a whole number from 1 to {LARGEST}. "
            f"Got {width!r}, such as features:1280."
        )
    return Arrays(int(width))


def saved_arrays(folder: Path, about: dict[str, Any], device: str) -> Arrays:
    """The stand-in that ``save`` wrote into a folder.

    Raises:
        DataError: the width is no number.
    """
    if type(about["features"]) is not int:
        raise DataError(f"{folder} must state a width. Got {about['features']!r}; save it again.")
    return arrays(str(about["features"]), device)
