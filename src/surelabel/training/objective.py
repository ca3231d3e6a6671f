"""Compute the training objective: a loss, regularizers, and additional losses of a method."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from surelabel.links import Link
from surelabel.methods import AddsTrainingLosses, TunesTexts
from surelabel.records import FrozenTextVectors, TrainingStep
from surelabel.training.batches import Batch

ElementLoss = Callable[[Tensor, Tensor], Tensor]
SetLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
Regularizer = Callable[[TrainingStep], Tensor]
MIN_DENOMINATOR = 1e-12  # the loss is 0 if no target is known


def objective_mean_over_known(loss: ElementLoss) -> SetLoss:
    """Return a function that computes the mean of an elementwise loss over known targets.

    If ``known`` contains weights instead of booleans, the mean is weighted. If no target is known,
    the mean is 0.

    Example:
        >>> import torch
        >>> from surelabel.losses import binary
        >>> mean = objective_mean_over_known(binary)
        >>> known = torch.tensor([[True, False]])
        >>> round(mean(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), known).item(), 4)
        0.6931
    """

    return partial(_mean_of_objective_elements, loss)


def _mean_of_objective_elements(
    loss: ElementLoss, scores: Tensor, targets: Tensor, known: Tensor
) -> Tensor:
    elements = loss(scores, targets)
    weights = known.to(elements.dtype)
    return (elements * weights).sum() / weights.sum().clamp(min=MIN_DENOMINATOR)


@dataclass(frozen=True)
class Objective:
    """Loss and regularizers of a training run.

    Attributes:
        loss: Function of scores, targets and ``known`` that returns the scalar loss of a batch. It
            is an entry of ``SET_LOSSES``, or ``objective_mean_over_known`` of an entry of
            ``LOSSES``.
        regularizers: Entries of ``REGULARIZERS``, each with its weight (lambda).
        link: Link of the loss. If the link is strictly increasing, regularizers receive log-odds as
            well as scores.
        texts: Unit vectors of length d of the c label texts, ``(c, d)``, for regularizers that use
            label texts.
        prompts: Trained method with learned prompts in the text tower, for regularizers that use
            the text vectors of the prompts.
        frozen_text_vectors: Frozen text encoder and reference words, for regularizers that use text
            vectors of words other than the labels.
        method: Trained method with additional losses, which are added to the regularizers.
    """

    loss: SetLoss
    regularizers: Sequence[tuple[Regularizer, float]] = ()
    link: Link | None = None
    texts: Tensor | None = None
    prompts: TunesTexts | None = None
    frozen_text_vectors: FrozenTextVectors | None = None
    method: AddsTrainingLosses | None = None

    @property
    def is_mean_over_known(self) -> bool:
        """Return whether the objective is only the mean of a loss over known targets."""
        is_mean = getattr(self.loss, "func", None) is _mean_of_objective_elements
        return is_mean and not self.regularizers and self.method is None

    def __call__(self, scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return two scalars: the loss of a batch, and the weighted sum of the regularizers.

        Additional losses of the method are part of the second value. If there are neither
        regularizers nor additional losses, the second value is None.
        """
        known = batch.known if batch.weights is None else batch.known * batch.weights[:, None]
        loss = self.loss(scores, batch.targets, known)
        penalties = []
        if self.regularizers:
            step = self._step(scores, batch)
            penalties += [weight * regularizer(step) for regularizer, weight in self.regularizers]
        if self.method:
            penalties.append(self.method.training_losses(batch.targets, batch.known))
        return loss, torch.stack(penalties).sum() if penalties else None

    def _step(self, scores: Tensor, batch: Batch) -> TrainingStep:
        """Return the training step for the regularizers; the texts of pairs are the captions."""
        pooled = batch.features.pooled  # empty if an encoder is trained from pixels
        return TrainingStep(
            scores=scores,
            logits=self.link.log_odds(scores)
            if self.link and self.link.is_strictly_increasing
            else None,
            targets=batch.targets,
            known=batch.known,
            texts=self.texts if batch.texts is None else batch.texts.pooled,
            features=pooled if pooled.shape[1] else None,
            tuned_texts=self.prompts.tuned_texts() if self.prompts else None,
            encode_words=self.prompts.encode_words if self.prompts else None,
            frozen_text_vectors=self.frozen_text_vectors,
        )

    def mean_over_heads(self, heads: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return loss and penalty, averaged over h heads with scores ``(h, n, c)``."""
        losses, penalties = zip(*(self(scores, batch) for scores in heads), strict=True)
        if penalties[0] is None:
            return _objective_mean_scalar(losses), None
        return _objective_mean_scalar(losses), _objective_mean_scalar(penalties)


def _objective_mean_scalar(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean()
