"""Interface of a method: a module from the features of images to scores of labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.records import Features


@dataclass(frozen=True)
class TrainingRecipe:
    """Default training settings of a method; settings of the run replace them.

    Attributes:
        optimizer: Entry of ``OPTIMIZERS``.
        loss: Entry of ``LOSSES`` or ``SET_LOSSES``.
        epochs: Number of passes over the training images.
        batch_size: Number of images per optimizer step.
        micro_batch_size: Largest number of images in memory at once; the gradients of a larger
            batch are accumulated.
        learning_rate: Largest learning rate.
        weight_decay: Weight decay; it applies to matrices only.
        warm_up: Share of all steps in which the learning rate rises before it falls, in [0, 1).
        ema_decay: Decay of the exponential moving average of the weights, in [0, 1); 0 keeps the
            weights of the last step.
    """

    optimizer: str = "adamw"
    loss: str = "binary"
    epochs: int = 30
    batch_size: int = 64
    micro_batch_size: int = 4096
    learning_rate: float = 0.003
    weight_decay: float = 0.01
    warm_up: float = 0.0
    ema_decay: float = 0.0


class Method(Protocol):
    """Constructor ``method(encoder, names, *, settings)`` of a module from features to scores.

    Attributes:
        learns_from: Data that the method is fitted on: ``nothing``, ``labels``, or ``images``
            (unlabelled images).
        needs: Parts of ``Features`` that the method reads beside ``pooled``: ``patches`` (plain),
            ``self_aware`` (patches too), ``attention``, ``trunk`` (``layers[-1]``), ``ladder``,
            ``views``. A method that needs ``pixels`` trains the encoder itself: see ``FineTune``.
        image_size: Height and width in pixels at which the encoder takes the whole image; None
            for the default size of the encoder.
        open_vocabulary: Whether the method accepts new labels without another fit.
        recipe: Default training settings.
    """

    learns_from: str
    needs: tuple[str, ...]
    image_size: int | None
    open_vocabulary: bool
    recipe: TrainingRecipe

    def __call__(self, encoder: Encoder, names: Sequence[str]) -> nn.Module:
        """Return a module whose ``forward(features)`` computes scores ``(n, c)``.

        A module that needs ``views`` has ``next_views(features)``. It returns one ``ViewLayout``
        for all images, one layout (or None) per image, or None if no views are needed any more.
        ``forward`` then receives the vectors of these views, in this order, at the default size
        of the encoder.

        A module that is fitted on unlabelled images without gradients has
        ``fit_unlabelled(features)``.

        A module that is trained on labels has ``initialize(features, targets, known, link)``. It
        sets the initial values of the few parameters that all images share, so that training
        starts at a good level. ``link`` is the link of the loss, from log-odds to scores.

        A module may train with other scores than it predicts with. It then has
        ``training_scores(features, targets, known)``, ``(h, n, c)``; the loss is the mean over
        these ``h`` heads.
        """


def patch_scores(method: nn.Module, features: Features) -> Tensor:
    """Return the scores of every patch, each scored as if it were an image, ``(n, p, c)``."""
    assert features.patches is not None
    n, p, _ = features.patches.shape
    scores: Tensor = method(Features(pooled=features.patches.flatten(0, 1)))
    return scores.view(n, p, -1)
