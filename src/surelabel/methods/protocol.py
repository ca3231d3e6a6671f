"""What a method is: a module from the features of pictures to the scores of names."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.records import Features


class Method(Protocol):
    """Called as ``method(backbone, names, *, settings)``; the result maps features to scores.

    Attributes:
        learns_from: What it is fitted on: ``nothing`` or ``labels``.
        needs: Parts of ``Features`` that it reads, beside ``pooled``.
        open_vocabulary: True where it takes new names without being fitted again.
    """

    learns_from: str
    needs: tuple[str, ...]
    open_vocabulary: bool

    def __call__(self, backbone: Backbone, names: Sequence[str]) -> nn.Module:
        """A module whose ``forward(features)`` gives scores ``(n, c)``.

        One that learns from labels has ``start(features, targets, known)`` as well: where its
        few shared or single numbers begin, so that fitting need not find them first.
        """


def of_patches(method: nn.Module, features: Features) -> Tensor:
    """Scores of every patch as if it were a picture, ``(n, p, c)``: where a label is."""
    assert features.patches is not None
    n, p, _ = features.patches.shape
    scores: Tensor = method(Features(pooled=features.patches.flatten(0, 1)))
    return scores.view(n, p, -1)
