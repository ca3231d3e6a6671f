"""Pseudo-labels that learn from the student."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from surelabel.errors import ConfigError, InputError
from surelabel.links.focal import Variant
from surelabel.pseudolabels.checked import of_pictures

EPSILON = 1e-8  # keeps the first step of an element without a gradient from dividing by zero


@dataclass(frozen=True)
class Borrowed:
    """The rows of an estimator that one batch looks at.

    Attributes:
        log_odds: A copy of them that collects a gradient, ``(m, c)``.
        rows: Their numbers in the estimator, rising, each once, ``(m,)``.
        places: For each canvas its pictures' rows in ``log_odds``, as ``views.blended`` takes them.
    """

    log_odds: Tensor
    rows: Tensor
    places: list[list[int]]


class Estimator(nn.Module):
    """A label for every picture and name, in log-odds, moved towards what the student says.

        z <- (1 - lr · weight_decay) · z - lr · m / (√v + 1e-8)     m, v: Adam's means

    of the rows that a batch borrowed, each with its own count of steps. All else stays.

    Args:
        log_odds: Where the labels begin, ``(n, c)``; they are copied.
        lr: Step size: about what an element moves in one step.
        weight_decay: Pull towards log-odds 0, that is towards a probability of one half; 0 is none.
        beta_1: How slowly the mean gradient forgets, in [0, 1).
        beta_2: How slowly its mean square forgets, in [0, 1).
        variant: "paper" moves the rows of the batch; "code" moves and shrinks all rows at every
            step, also on what is left of old gradients.

    Attributes:
        log_odds: The labels now, ``(n, c)``, in float32 or finer; corrected and blended by others.

    Raises:
        InputError: ``log_odds`` have another shape, or one is not finite.
        ConfigError: a setting is out of its range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, eq. 17 to 19; Loshchilov and Hutter, Decoupled
        Weight Decay Regularization, ICLR 2019.

    Differs:
        No weight decay, where the authors' code has 0.01: a pull that grows with the number of
        pictures, and after one epoch of COCO has shrunk every log-odds to 0.60 of itself, more
        than learning moved it. Rows rest when they are not looked at; in the code, variant
        "code", an element goes on for ten times the distance of its step, 0.13 in all on
        VOC2012, so ``lr`` near 0.1 moves as far.

    Example:
        >>> estimator = Estimator(torch.zeros(3, 2))
        >>> batch = estimator.borrow([[2]])
        >>> expected = torch.tensor([[1.0, 0.0]])
        >>> nn.functional.binary_cross_entropy_with_logits(batch.log_odds, expected).backward()
        >>> estimator.step(batch)
        >>> estimator.log_odds
        tensor([[ 0.0000,  0.0000],
                [ 0.0000,  0.0000],
                [ 0.0100, -0.0100]])
    """

    log_odds: Tensor
    mean: Tensor
    square: Tensor
    steps: Tensor

    def __init__(
        self,
        log_odds: Tensor,
        *,
        lr: float = 0.01,
        weight_decay: float = 0.0,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        variant: Variant = "paper",
    ):
        super().__init__()
        _check(lr, weight_decay, beta_1, beta_2, variant)
        start = of_pictures(log_odds).detach().clone()
        self.register_buffer("log_odds", start)
        self.register_buffer("mean", torch.zeros_like(start))
        self.register_buffer("square", torch.zeros_like(start))
        self.register_buffer("steps", torch.zeros(len(start), 1, dtype=torch.int64))
        self.lr, self.weight_decay = lr, weight_decay
        self.beta_1, self.beta_2, self.variant = beta_1, beta_2, variant

    def borrow(self, rows: Sequence[Sequence[int]]) -> Borrowed:
        """Copy the labels of the pictures on some canvases, to be blended and learnt.

        Args:
            rows: For each canvas the row numbers of the pictures on it.

        Raises:
            InputError: there is no canvas, one has no picture, or a row number is not there.
        """
        if not rows or not all(len(canvas) for canvas in rows):
            raise InputError("Every canvas must name a row of the estimator; one or all name none.")
        used = sorted({int(row) for canvas in rows for row in canvas})
        if used[0] < 0 or used[-1] >= len(self.log_odds):
            wrong = used[0] if used[0] < 0 else used[-1]
            last = len(self.log_odds) - 1
            raise InputError(
                f"rows must be row numbers of the estimator, 0 to {last}. Got {wrong}."
            )
        place = {row: at for at, row in enumerate(used)}
        numbers = torch.tensor(used, device=self.log_odds.device)
        return Borrowed(
            self.log_odds[numbers].requires_grad_(),
            numbers,
            [[place[int(row)] for row in canvas] for canvas in rows],
        )

    @torch.no_grad()
    def step(self, borrowed: Borrowed) -> None:
        """Move the labels along the gradient that a batch collected.

        Raises:
            InputError: no gradient has reached ``borrowed``.
        """
        gradient = borrowed.log_odds.grad
        if gradient is None:
            raise InputError("borrowed must have a gradient. Call backward() on its loss first.")
        rows = borrowed.rows
        if self.variant == "code":
            everywhere = torch.zeros_like(self.log_odds)
            gradient = everywhere.index_copy(0, rows, gradient)
            rows = torch.arange(len(everywhere), device=rows.device)
        self.steps[rows] += 1
        self.mean[rows] = torch.lerp(gradient, self.mean[rows], self.beta_1)
        self.square[rows] = torch.lerp(gradient.square(), self.square[rows], self.beta_2)
        kept = 1 - self.lr * self.weight_decay
        self.log_odds[rows] = kept * self.log_odds[rows] - self.lr * self._direction(rows)

    def _direction(self, rows: Tensor) -> Tensor:
        """Adam's mean gradient over its root mean square, both freed of their start at zero."""
        steps = self.steps[rows].double()
        mean = self.mean[rows] / (1 - self.beta_1**steps).to(self.mean.dtype)
        square = self.square[rows] / (1 - self.beta_2**steps).to(self.mean.dtype)
        return mean / (square.sqrt() + EPSILON)


def _check(lr: float, weight_decay: float, beta_1: float, beta_2: float, variant: str) -> None:
    if not 0 < lr < float("inf"):
        raise ConfigError(f"lr must be above 0, such as 0.01. Got {lr!r}.")
    if not 0 <= lr * weight_decay <= 1:
        raise ConfigError(f"weight_decay must be in [0, 1 / lr], 0 for none. Got {weight_decay!r}.")
    for name, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
        if not 0 <= beta < 1:
            raise ConfigError(f"{name} must be in [0, 1). Got {beta!r}.")
    if variant not in ("paper", "code"):
        raise ConfigError(
            'variant must be "paper" (rows of the batch move) or "code" (all rows do). '
            f"Got {variant!r}."
        )
