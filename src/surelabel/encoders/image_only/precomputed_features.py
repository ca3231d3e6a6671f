"""Placeholder for the encoder of precomputed image features."""

import hashlib
from pathlib import Path
from typing import Any, Self

from PIL import Image
from torch import Tensor

from surelabel.encoders.image_only.image_only import BaseImageOnlyEncoder
from surelabel.encoders.loading.encoder_manifest import write_encoder_manifest
from surelabel.errors import ConfigError, DataError
from surelabel.files import atomic_folder
from surelabel.records import Features

MAX_WIDTH = 2**20


class PrecomputedFeatures(BaseImageOnlyEncoder):
    """Placeholder for the encoder of precomputed image features. It stores only their width.

    Args:
        width: Number of values of each feature vector.

    Example:
        >>> PrecomputedFeatures(1280).name
        'features:1280'
    """

    crop_mode = "squash"

    def __init__(self, width: int):
        super().__init__(f"features:{width}")
        self.width, self.preprocess_cfg = width, {}
        self.fingerprint = hashlib.sha256(self.name.encode()).hexdigest()[:16]

    @property
    def n_image_parameters(self) -> int:
        """Raise ConfigError, because the placeholder cannot encode images."""
        raise self._no_images_error()

    @property
    def input_side(self) -> int:
        """Raise ConfigError, because the placeholder cannot encode images."""
        raise self._no_images_error()

    def preprocess(self, image: Image.Image) -> Tensor:
        """Raise ConfigError, because the placeholder cannot encode images."""
        raise self._no_images_error()

    def encode_images(self, pixels: Tensor) -> Features:
        """Raise ConfigError, because the placeholder cannot encode images."""
        raise self._no_images_error()

    def with_image_size(self, size: int) -> Self:
        """Raise ConfigError, because the placeholder cannot encode images."""
        raise self._no_images_error()

    def save(self, folder: Path) -> None:
        """Write a manifest with the width of the features to a folder.

        The model name ``local-dir:FOLDER`` loads the placeholder from this folder.

        Raises:
            DataError: If the folder cannot be written.
        """
        with atomic_folder(folder) as new:
            write_encoder_manifest(new, "features", self.width, self.fingerprint)

    def _no_images_error(self) -> ConfigError:
        return ConfigError(
            f"{self.name} needs precomputed features of width {self.width}; got images. Use "
            "LabelledFeatures, or the encoder that computed the features."
        )


def precomputed_features_of_width(width: str, device: str) -> PrecomputedFeatures:
    """Return the placeholder for the encoder of precomputed features of width ``width``.

    Args:
        width: Number of values of each feature vector, as a string of decimal digits.
        device: Name of a device. This argument has no effect.

    Raises:
        ConfigError: If ``width`` is not an integer from 1 to 1,048,576.

    Example:
        >>> precomputed_features_of_width("64", "cpu").width
        64
    """
    is_number = width.isascii() and width.isdigit() and len(width) <= len(str(MAX_WIDTH))
    if not is_number or not 1 <= int(width) <= MAX_WIDTH:
        raise ConfigError(
            f"WIDTH in features:WIDTH must be an integer from 1 to {MAX_WIDTH}; got {width!r}. "
            "Use the width of the features, such as features:1280."
        )
    return PrecomputedFeatures(int(width))


def load_saved_precomputed_features(
    folder: Path, manifest: dict[str, Any], device: str
) -> PrecomputedFeatures:
    """Return the placeholder that is described in the manifest of a saved encoder.

    Args:
        folder: Folder of the manifest, for error messages.
        manifest: Content of the manifest. The value of the key ``features`` is the width.
        device: Name of a device. This argument has no effect.

    Raises:
        DataError: If the width in the manifest is not an integer.
        ConfigError: If the width is not in the range from 1 to 1,048,576.
    """
    width = manifest["features"]
    if type(width) is not int:
        raise DataError(
            f"The manifest in {folder} must contain an integer width as features; got {width!r}. "
            "Save the encoder again."
        )
    return precomputed_features_of_width(str(width), device)
