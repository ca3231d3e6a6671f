"""What a training step makes small."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from surelabel.links import Link
from surelabel.records import Step
from surelabel.training.batch import Batch

ElementLoss = Callable[[Tensor, Tensor], Tensor]
SetLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
Regularizer = Callable[[Step], Tensor]
TINY = 1e-12  # nothing known costs nothing


def of_elements(loss: ElementLoss) -> SetLoss:
    """The mean of a loss of elements over what is known, or weighted by how much each counts.

    Example:
        >>> import torch
        >>> from surelabel.losses import binary
        >>> mean = of_elements(binary)
        >>> known = torch.tensor([[True, False]])
        >>> round(mean(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), known).item(), 4)
        0.6931
    """

    def mean(scores: Tensor, targets: Tensor, known: Tensor) -> Tensor:
        elements = loss(scores, targets)
        counted = known.to(elements.dtype)
        return (elements * counted).sum() / counted.sum().clamp(min=TINY)

    return mean


@dataclass(frozen=True)
class Objective:
    """A loss, and a regularizer beside it.

    Attributes:
        loss: Of a whole batch, ``(scores, targets, known) -> ()``; ``of_elements`` makes one of an
            entry of ``LOSSES``, and those of ``SET_LOSSES`` are such.
        regularizer: An entry of ``REGULARIZERS``; none when left out.
        weight: What the regularizer is multiplied with (lambda).
        link: Of the loss; a strict one gives the regularizer log-odds, others scores alone.
        texts: Unit vectors of the names, ``(c, d)``, for regularizers that look at them.
    """

    loss: SetLoss
    regularizer: Regularizer | None = None
    weight: float = 1.0
    link: Link | None = None
    texts: Tensor | None = None

    def __call__(self, scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The loss of a batch and its weighted regularizer, each one number."""
        known = batch.known if batch.weights is None else batch.known * batch.weights[:, None]
        loss = self.loss(scores, batch.targets, known)
        if self.regularizer is None:
            return loss, None
        pooled = batch.features.pooled  # empty where a network is trained from pixels
        step = Step(
            scores=scores,
            logits=self.link.log_odds(scores) if self.link and self.link.strict else None,
            targets=batch.targets,
            known=batch.known,
            texts=self.texts,
            features=pooled if pooled.shape[1] else None,
        )
        return loss, self.weight * self.regularizer(step)

    def of_heads(self, heads: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Both as means over several scores of the same batch, ``(h, n, c)``."""
        losses, penalties = zip(*(self(scores, batch) for scores in heads), strict=True)
        if self.regularizer is None:
            return _mean(losses), None
        return _mean(losses), _mean(penalties)


def _mean(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean()
