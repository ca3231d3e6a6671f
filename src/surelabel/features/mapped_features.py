"""Store dense features of many images in temporary files, and read the features batch by batch."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from surelabel.mapped_arrays import mapped_zeros
from surelabel.records import Features

FLOAT32_PARTS = ("pooled", "attention")  # attention is normalized after it was rounded to fp16


@runtime_checkable
class FeatureRows(Protocol):
    """Features of n images, of which only the requested rows are in memory.

    Attributes:
        pooled: Pooled vectors of the images in float32, ``(n, d)``.
    """

    @property
    def pooled(self) -> Tensor: ...

    def take(self, rows: Tensor) -> Features:
        """Return the features of the images in ``rows``, in float32."""

    def subset(self, rows: Tensor) -> Self:
        """Return the features of the images in ``rows``, without reading values from the files."""


@dataclass(frozen=True)
class MappedFeatures:
    """Features of n images in temporary files.

    Dense features are stored in fp16, as in the feature cache, so that no digits are lost.

    Attributes:
        stored: Features of all images of the files. Only ``pooled`` and ``attention`` are in
            float32.
        rows: Row of each of the n images in the files, ``(n,)``.
    """

    stored: Features
    rows: Tensor

    @property
    def pooled(self) -> Tensor:
        """Return the pooled vectors in float32, ``(n, d)``."""
        pooled = self.stored.pooled
        is_whole = torch.equal(self.rows, torch.arange(len(pooled)))
        return pooled if is_whole else pooled[self.rows]

    def take(self, rows: Tensor) -> Features:
        """Return the features of the images in ``rows``, in float32."""
        indices = self.rows[rows]
        return _map_feature_tensors(self.stored, lambda _, tensor: tensor[indices].float())

    def subset(self, rows: Tensor) -> "MappedFeatures":
        """Return the features of the images in ``rows``, without reading values from the files."""
        return replace(self, rows=self.rows[rows])


class MappedFeatureWriter:
    """Writer that stores the features of images block by block.

    Args:
        n_images: Maximum number of images.
        folder: Folder on the disk for the temporary files, as for
            :func:`surelabel.mapped_arrays.mapped_zeros`.
    """

    def __init__(self, n_images: int, folder: Path):
        self._n_images, self._folder = n_images, folder
        self._stored: Features | None = None
        self._n_written = 0

    def append(self, features: Features) -> None:
        """Write the features of a block of images.

        All blocks must have the parts and shapes of the first block.

        Raises:
            DataError: If the disk is full.
        """
        if self._stored is None:
            self._stored = _map_feature_tensors(features, self._allocate)
        rows = slice(self._n_written, self._n_written + len(features.pooled))
        sources = _feature_tensors(features)
        for part, target in _feature_tensors(self._stored).items():
            target[rows] = sources[part].to(target.dtype)
        self._n_written = rows.stop

    def features(self) -> MappedFeatures:
        """Return the features of all written images, at least one."""
        assert self._stored is not None
        n_images = self._n_written
        stored = _map_feature_tensors(self._stored, lambda _, tensor: tensor[:n_images])
        return MappedFeatures(stored, torch.arange(n_images))

    def _allocate(self, part: str, tensor: Tensor) -> Tensor:
        dtype = np.float32 if part in FLOAT32_PARTS else np.float16
        shape = (self._n_images, *tensor.shape[1:])
        return torch.from_numpy(mapped_zeros(shape, dtype, folder=self._folder))


def mapped_feature_bytes(features: Features) -> int:
    """Return the number of bytes of an image in the files of :class:`MappedFeatures`."""
    return sum(
        tensor[0].numel() * (4 if part in FLOAT32_PARTS else 2)
        for part, tensor in _feature_tensors(features).items()
    )


def has_dense_features(features: Features) -> bool:
    """Return whether the features contain more than pooled vectors."""
    return any(getattr(features, f.name) is not None for f in fields(features)[1:])


def _feature_tensors(features: Features) -> dict[str, Tensor]:
    """Return all tensors of features by part name; the name for a layer contains its index."""
    tensors: dict[str, Tensor] = {}
    for part in (f.name for f in fields(features)):
        value = getattr(features, part)
        if isinstance(value, Tensor):
            tensors[part] = value
        elif isinstance(value, dict):
            tensors |= {f"{part} {layer}": tensor for layer, tensor in value.items()}
    return tensors


def _map_feature_tensors(features: Features, change: Callable[[str, Tensor], Tensor]) -> Features:
    """Return features with the same parts, whose tensors are the results of a function.

    Args:
        features: Features of images.
        change: Function of the name of a part and its tensor.
    """
    changed: dict[str, Any] = {}
    for part in (f.name for f in fields(features)):
        value = getattr(features, part)
        if isinstance(value, Tensor):
            changed[part] = change(part, value)
        elif isinstance(value, dict):
            changed[part] = {layer: change(part, tensor) for layer, tensor in value.items()}
    return replace(features, **changed)
