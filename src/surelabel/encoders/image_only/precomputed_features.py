"""This module defines a placeholder for the encoder of precomputed image features."""

import hashlib
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from PIL import Image
from safetensors.numpy import save_file
from torch import Tensor

from surelabel.array_files import read_safetensors
from surelabel.arrays import Array
from surelabel.encoders.image_only.image_only import BaseImageOnlyEncoder
from surelabel.encoders.image_only.vector_normalization import (
    VectorNormalization,
    check_normalization_name,
    fit_vector_normalization,
)
from surelabel.encoders.loading.encoder_manifest import write_encoder_manifest
from surelabel.errors import ConfigError, DataError
from surelabel.files import atomic_folder
from surelabel.records import Features

MAX_WIDTH = 2**20
STATISTICS_FILE = "vector_statistics.safetensors"
SAVE_AGAIN = "Copy the whole folder again, or save the encoder again."


class PrecomputedFeatures(BaseImageOnlyEncoder):
    """Placeholder for the encoder of precomputed image features, with their normalization.

    Args:
        width: Number of values of each feature vector.
        normalize: Normalization that a fit computes from its training vectors:

            - ``auto``: as ``unit`` if the length of each training vector is between 0.99 and 1.01,
              otherwise as ``standardize``;
            - ``standardize``: subtract the mean of each column and divide by its standard
              deviation;
            - ``unit``: divide each vector by its length;
            - ``none``: use the vectors unchanged.
        images: Fitted normalization of image vectors. If None, the normalization is not fitted yet.
            The normalizations ``unit`` and ``none`` need no fit.
        texts: Fitted normalization of the vectors of captions, as ``images``.

    Raises:
        ConfigError: If ``normalize`` is unknown.

    Example:
        >>> PrecomputedFeatures(1280).name
        'features:1280'
    """

    crop_mode = "squash"
    _manifest_kind = "features"

    def __init__(
        self,
        width: int,
        *,
        normalize: str = "auto",
        images: VectorNormalization | None = None,
        texts: VectorNormalization | None = None,
    ):
        check_normalization_name(normalize)
        super().__init__(f"features:{width}")
        self.width, self.preprocess_cfg = width, {}
        constant = VectorNormalization(normalize) if normalize in ("unit", "none") else None
        self.normalize, self.images, self.texts = normalize, images or constant, texts or constant
        self.fingerprint = _normalization_fingerprint(self.name, self.images, self.texts)

    def fit_normalization(
        self, images: npt.NDArray[np.floating], texts: npt.NDArray[np.floating] | None = None
    ) -> "PrecomputedFeatures":
        """Return a placeholder whose normalization is fitted on training vectors.

        Args:
            images: Finite image vectors, ``(n, d)``, n >= 1.
            texts: Finite vectors of captions, ``(s, e)``. If None, there are no captions.

        Raises:
            InputError: If the vectors are to be standardized, and there is only one vector.
        """
        return PrecomputedFeatures(
            self.width,
            normalize=self.normalize,
            images=fit_vector_normalization(images, self.normalize),
            texts=None if texts is None else fit_vector_normalization(texts, self.normalize),
        )

    @property
    def is_standardized(self) -> bool:
        """Return whether image vectors are standardized, or False before the fit."""
        return self.images is not None and self.images.kind == "standardize"

    @property
    def normalization_description(self) -> str:
        """Return a description of the fitted normalization, or of the setting before the fit."""
        if self.images is None:
            return f"not fitted yet (normalize={self.normalize})"
        if self.texts is None or self.texts.description == self.images.description:
            return self.images.description
        return f"images {self.images.description}; captions {self.texts.description}"

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
        """Write a manifest with the width and the normalization of the features to a folder.

        The model name ``local-dir:FOLDER`` loads the placeholder from this folder.

        Raises:
            DataError: If the folder cannot be written.
        """
        parts = {"images": self.images, "texts": self.texts}
        fields: dict[str, Any] = {
            part: normalization
            and {"kind": normalization.kind, "n_vectors": normalization.n_vectors}
            for part, normalization in parts.items()
        }
        arrays = {
            f"{part}_{name}": array
            for part, normalization in parts.items()
            if normalization
            for name, array in _statistics(normalization).items()
        }
        with atomic_folder(folder) as new:
            fields = {"normalize": self.normalize, **fields, **self._manifest_fields}
            write_encoder_manifest(
                new, self._manifest_kind, self._manifest_source, self.fingerprint, **fields
            )
            if arrays:
                save_file(arrays, new / STATISTICS_FILE)

    @property
    def _manifest_source(self) -> int | str:
        """Return the manifest value for the kind of the encoder: the width of the vectors."""
        return self.width

    @property
    def _manifest_fields(self) -> dict[str, Any]:
        """Return the fields of the manifest in addition to the fields of the normalization."""
        return {}

    def _no_images_error(self) -> ConfigError:
        return ConfigError(
            f"{self.name} needs precomputed features of width {self.width}; got image files. Give "
            "an .npz file with the array features (in Python an array (n, d)), or use a recognizer "
            "with the encoder that computed the features."
        )


def precomputed_features_of_width(
    width: str, device: str, *, normalize: str = "auto"
) -> PrecomputedFeatures:
    """Return the placeholder for the encoder of precomputed features of width ``width``.

    Args:
        width: Number of values of each feature vector, as a string of decimal digits.
        device: Name of a device. This argument has no effect.
        normalize: Normalization of the vectors; see :class:`PrecomputedFeatures`.

    Raises:
        ConfigError: If ``width`` is not an integer from 1 to 1,048,576, or if ``normalize`` is
            unknown.

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
    return PrecomputedFeatures(int(width), normalize=normalize)


def load_saved_precomputed_features(
    folder: Path, manifest: dict[str, Any], device: str
) -> PrecomputedFeatures:
    """Return the placeholder that is described in the manifest of a saved encoder.

    Manifests of surelabel 0.1.0 contain no normalization. In this case, vectors are scaled to unit
    length.

    Args:
        folder: Folder of the manifest, for error messages.
        manifest: Content of the manifest. The value of the key ``features`` is the width.
        device: Name of a device. This argument has no effect.

    Raises:
        DataError: If the width in the manifest is not an integer, or if the normalization is
            invalid.
        ConfigError: If the width is not in the range from 1 to 1,048,576.
    """
    width = manifest["features"]
    if type(width) is not int:
        raise DataError(
            f'The key "features" of the manifest in {folder} must be an integer, the width of the '
            f"vectors; got {width!r}. Save the encoder again."
        )
    precomputed_features_of_width(str(width), device)  # raises if the width is out of range
    if "normalize" not in manifest:
        return PrecomputedFeatures(width, normalize="unit")
    try:
        return PrecomputedFeatures(
            width,
            normalize=manifest["normalize"],
            images=read_saved_normalization(folder, manifest, "images", width),
            texts=read_saved_normalization(folder, manifest, "texts"),
        )
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{folder} must contain a valid normalization for vectors of width {width}; got "
            f"{manifest} ({error}). {SAVE_AGAIN}"
        ) from error


def _statistics(normalization: VectorNormalization) -> dict[str, Array]:
    """Return the arrays of the statistics of a normalization, or no arrays without statistics."""
    arrays = {"mean": normalization.mean, "deviation": normalization.deviation}
    return {name: array for name, array in arrays.items() if array is not None}


def read_saved_normalization(
    folder: Path, manifest: dict[str, Any], part: str, width: int | None = None
) -> VectorNormalization | None:
    """Return the normalization of image vectors or captions of a saved encoder, or None.

    Args:
        folder: Folder of the manifest and of the file of the statistics.
        manifest: Content of the manifest.
        part: Key of the normalization in the manifest, ``images`` or ``texts``.
        width: Expected number of columns. If None, the number is not checked.

    Raises:
        ConfigError, KeyError, TypeError, ValueError: If the fields or the arrays are invalid.
        DataError: If the file of the statistics is damaged.
    """
    fields = manifest[part]
    if fields is None:
        return None
    kind, n_vectors = fields["kind"], int(fields["n_vectors"])
    check_normalization_name(kind)
    if kind != "standardize":
        return VectorNormalization(kind)
    arrays = {}
    if (folder / STATISTICS_FILE).exists():
        arrays = read_safetensors(folder / STATISTICS_FILE, "numpy", remedy=SAVE_AGAIN)
    mean, deviation = (arrays[f"{part}_{name}"] for name in ("mean", "deviation"))
    is_valid = mean.shape == deviation.shape == (width or mean.size,) and bool(
        np.isfinite(mean).all() and np.isfinite(deviation).all() and (deviation >= 0).all()
    )
    if not is_valid:
        raise ValueError(
            f"invalid statistics of {part}, with the shapes {mean.shape} and {deviation.shape}"
        )
    return VectorNormalization(kind, mean, deviation, n_vectors)


def _normalization_fingerprint(
    name: str, images: VectorNormalization | None, texts: VectorNormalization | None
) -> str:
    """Return a hash of the encoder name and of normalizations other than unit length."""
    digest = hashlib.sha256(name.encode())
    for part, normalization in (("images", images), ("texts", texts)):
        if normalization and normalization.kind != "unit":
            digest.update(f"{part} {normalization.kind}".encode())
            for array in _statistics(normalization).values():
                digest.update(array.tobytes())
    return digest.hexdigest()[:16]
