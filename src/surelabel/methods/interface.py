"""Interface of methods, which compute the scores of labels from the features of images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.records import Features


@dataclass(frozen=True)
class TrainingRecipe:
    """Default training settings of a method; settings of a run replace these defaults.

    Attributes:
        optimizer: Entry of ``OPTIMIZERS``.
        loss: Entry of ``LOSSES`` or ``SET_LOSSES``.
        epochs: Number of passes over the training images.
        batch_size: Number of images per optimizer step.
        micro_batch_size: Largest number of images in memory at once; the gradients of a larger
            batch are accumulated.
        learning_rate: Peak learning rate.
        weight_decay: Weight decay, applied to weight matrices only.
        warm_up: Fraction of the training steps with linear warm-up of the learning rate, in [0, 1).
        ema_decay: Decay of the exponential moving average of the weights, in [0, 1). If 0, the
            weights of the last step are used.
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
    """Constructor ``method(encoder, names, *, settings)`` of a module that computes scores.

    Attributes:
        learns_from: Data that the method is fitted on: ``labels`` (annotated images), ``images``
            (unlabelled images), or ``nothing`` (no fit).
        needs: Parts of ``Features`` that the method reads in addition to ``pooled``. Parts are
            ``patches`` (plain patches), ``self_aware`` (patches from self-aware attention),
            ``attention`` (between patches), ``trunk`` (``layers[-1]``), ``ladder`` (``layers`` and
            ``self_aware_sum``) and ``views``. A method that needs ``pixels`` also trains the
            encoder; see ``FineTune``.
        image_size: Height and width in pixels at which the whole image is encoded. If None, the
            default size of the encoder is used.
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

        A module that needs ``views`` has ``next_views(features)``. ``next_views`` returns one
        ``ViewLayout`` for all images, one layout (or None) per image, or None if no further views
        are needed. ``forward`` receives the vectors of the views in the order of the layouts,
        encoded at the default size of the encoder.

        A module that is fitted on unlabelled images without gradients has
        ``fit_unlabelled(features)``.

        A module that is trained on labels has ``initialize(features, targets, known, link)``.
        ``initialize`` sets initial values of scales and biases, so that training starts with
        approximately calibrated scores. ``link`` is the link of the loss; its method ``scores``
        converts log-odds to scores.

        A module that is trained on other scores than those of ``forward`` has
        ``training_scores(features, targets, known)``, which returns the scores of ``h`` heads,
        ``(h, n, c)``. The loss is the mean over the heads.
        """


def score_patches_with_any_method(method: nn.Module, features: Features) -> Tensor:
    """Return the scores of patches, ``(n, p, c)``; each patch is scored like an image."""
    assert features.patches is not None
    n, p, _ = features.patches.shape
    scores: Tensor = method(Features(pooled=features.patches.flatten(0, 1)))
    return scores.view(n, p, -1)
