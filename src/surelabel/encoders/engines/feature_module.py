"""Define a module that computes one kind of image features as a tuple of tensors."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders.interface import ENCODER_METHODS, Encoder
from surelabel.records import Features

UNIT_VECTORS = ("pooled", "patches")
LAYER_PREFIX = "layers "  # of the names of outputs; the index of the layer follows


class FeatureModule(nn.Module):
    """Compute one kind of features of preprocessed images, as a tuple of tensors.

    Args:
        encoder: Encoder with a PyTorch network in its attribute ``model``.
        kind: Kind of features, a key of ``ENCODER_METHODS``; or, for the features of a ladder, the
            first block and the depth, as in ``Encoder.encode_ladder_features``.
    """

    def __init__(self, encoder: Encoder, kind: str | tuple[int, int]):
        super().__init__()
        self.encoder, self.kind = encoder, kind
        self.network: nn.Module = getattr(encoder, "model")  # noqa: B009 (not in the protocol)

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors of the features, in the order of ``FeatureLayout.names``."""
        return tuple(_feature_tensors(self.features(pixels)).values())

    def features(self, pixels: Tensor) -> Features:
        """Return the features of preprocessed images ``(n, 3, h, w)``."""
        if isinstance(self.kind, tuple):
            first_block, depth = self.kind
            return self.encoder.encode_ladder_features(pixels, first_block=first_block, depth=depth)
        features: Features = getattr(self.encoder, ENCODER_METHODS[self.kind])(pixels)
        return features

    @torch.no_grad()
    def layout(self, pixels: Tensor) -> "FeatureLayout":
        """Return the names of the tensors and the patch grid, measured with example images."""
        features = self.features(pixels)
        return FeatureLayout(tuple(_feature_tensors(features)), features.grid)


@dataclass(frozen=True)
class FeatureLayout:
    """Names of the tensors of features, and the patch grid.

    Attributes:
        names: Attribute of ``Features`` of each tensor, or ``layers`` with the index of the layer.
        grid: Numbers of rows and columns of the patch grid, or None.
    """

    names: tuple[str, ...]
    grid: tuple[int, int] | None

    def features(self, tensors: tuple[Tensor, ...]) -> Features:
        """Return the features with the given tensors, which are in the order of ``names``.

        Pooled vectors and patch vectors are normalized again, because their length is not exactly 1
        if they were normalized in bf16.
        """
        by_name = dict(zip(self.names, tensors, strict=True))
        by_name |= {n: F.normalize(by_name[n], dim=-1) for n in UNIT_VECTORS if n in by_name}
        layers = {
            int(name.removeprefix(LAYER_PREFIX)): by_name.pop(name)
            for name in self.names
            if name.startswith(LAYER_PREFIX)
        }
        return Features(**by_name, grid=self.grid, layers=layers or None)


def _feature_tensors(features: Features) -> dict[str, Tensor]:
    """Return the tensors of features by name; attributes that are None are left out."""
    fields = vars(features)
    tensors = {name: value for name, value in fields.items() if isinstance(value, Tensor)}
    layers = features.layers or {}
    return tensors | {f"{LAYER_PREFIX}{index}": layer for index, layer in layers.items()}
