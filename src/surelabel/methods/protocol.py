"""What a method is: a module from the features of pictures to the scores of names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.records import Features


@dataclass(frozen=True)
class Recipe:
    """How a method is trained where a run says nothing.

    Attributes:
        optimizer: Entry of ``OPTIMIZERS``.
        loss: Entry of ``LOSSES`` or ``SET_LOSSES``.
        epochs: Passes over the labelled pictures.
        batch: Pictures a step.
        at_once: Pictures in memory at once; a larger batch is added up from several.
        learning_rate: Largest step size.
        weight_decay: On matrices only.
        warm_up: Share of all steps in which the step size rises before it falls, in [0, 1).
        averaging: Decay of the exponential mean of the weights that stays at the end, in [0, 1);
            0 for the weights of the last step.
    """

    optimizer: str = "adamw"
    loss: str = "binary"
    epochs: int = 30
    batch: int = 64
    at_once: int = 4096
    learning_rate: float = 0.003
    weight_decay: float = 0.01
    warm_up: float = 0.0
    averaging: float = 0.0


class Method(Protocol):
    """Called as ``method(backbone, names, *, settings)``; the result maps features to scores.

    Attributes:
        learns_from: What it is fitted on: ``nothing``, ``labels``, or ``images`` without any.
        needs: Parts of ``Features`` that it reads, beside ``pooled``: ``patches`` (plain),
            ``self_aware`` (patches too), ``attention``, ``trunk`` (``layers[-1]``), ``views``.
            One that needs ``pixels`` trains the encoder itself: see ``FineTune``.
        side: Size in pixels at which the encoder sees the whole picture; None for its own.
        open_vocabulary: True where it takes new names without being fitted again.
        recipe: How it is trained where a run says nothing.
    """

    learns_from: str
    needs: tuple[str, ...]
    side: int | None
    open_vocabulary: bool
    recipe: Recipe

    def __call__(self, backbone: Backbone, names: Sequence[str]) -> nn.Module:
        """A module whose ``forward(features)`` gives scores ``(n, c)``.

        One that needs ``views`` has ``cut(features)``: what to look at again, one ``Cut`` for all
        pictures or one a picture, chosen from the rest of the features; ``forward`` is then given
        the vectors of these parts, in this order, at the encoder's own size.

        One that learns from images without gradients has ``learn(features)``.

        One that learns from labels has ``start(features, targets, known, link)`` as well: where
        its few shared or single numbers begin, so that fitting need not find them first. ``link``
        is the loss's, from log-odds to where its scores lie. One that learns through other scores
        than it gives has ``learning(features, targets, known)``, ``(h, n, c)``: the loss is the
        mean over these heads.
        """


def of_patches(method: nn.Module, features: Features) -> Tensor:
    """Scores of every patch as if it were a picture, ``(n, p, c)``: where a label is."""
    assert features.patches is not None
    n, p, _ = features.patches.shape
    scores: Tensor = method(Features(pooled=features.patches.flatten(0, 1)))
    return scores.view(n, p, -1)
