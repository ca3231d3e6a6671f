"""Store pseudo-labels, and update selected rows with Adam during training."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from surelabel.errors import ConfigError, InputError
from surelabel.pseudolabels.targets.input_validation import validate_pseudolabel_image_scores
from surelabel.views.sewing import SewingVariant

EPSILON = 1e-8  # avoids a division by zero for elements without a gradient


@dataclass(frozen=True)
class EstimatorBatch:
    """Rows of a label estimator for one batch of canvases.

    Attributes:
        log_odds: Copy of the rows that accumulates a gradient, ``(m, c)``.
        rows: Unique row numbers in the estimator, in ascending order, ``(m,)``.
        canvases: Row numbers in ``log_odds`` of the images on each canvas, in the format of
            ``views.blend_labels_of_sewing``.
    """

    log_odds: Tensor
    rows: Tensor
    canvases: list[list[int]]


class LabelEstimator(nn.Module):
    """Store log-odds of every image and label, and update them with Adam during training.

        z <- (1 - lr · weight_decay) · z - lr · m / (√v + 1e-8)     m, v: Adam's moment estimates

    z are the log-odds, lr is the learning rate, and m and v are the bias-corrected moving averages
    of gradients and squared gradients. In the variant "paper", only the rows of a batch change,
    and steps are counted separately for each row.

    Args:
        log_odds: Initial log-odds, ``(n, c)``, which are copied.
        learning_rate: Learning rate (lr), > 0, approximately the change of an element in one step.
        weight_decay: Weight decay towards log-odds 0 (probability 0.5), >= 0, and at most
            1 / ``learning_rate``.
        beta_1: Decay rate of the moving average of the gradient, in [0, 1).
        beta_2: Decay rate of the moving average of the squared gradient, in [0, 1).
        variant: Rule of the update. With "paper", only the rows of the batch are updated. With
            "code", the mean gradients and the weight decay are applied to all rows at every step.

    Attributes:
        log_odds: Current log-odds of the images, ``(n, c)``, in float32 or wider, before they are
            blended on canvases.

    Raises:
        InputError: If ``log_odds`` are not of shape ``(n, c)``, or a value is not finite.
        ConfigError: If a setting is out of range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, eq. 17 to 19; Loshchilov and Hutter, Decoupled
        Weight Decay Regularization, ICLR 2019.

    Differs:
        The default weight decay is 0. In the authors' code the weight decay is 0.01, and its effect
        grows with the number of images. In one epoch of COCO, the weight decay multiplies all
        log-odds by 0.60, which is a larger change than that by the gradients. In the variant
        "paper", rows outside the batch do not change. In the variant "code", an element continues
        to change in later steps, by about ten times the size of one step (0.13 in total on
        VOC2012). In the variant "paper", a ``learning_rate`` near 0.1 leads to the same total
        change.

    Example:
        >>> estimator = LabelEstimator(torch.zeros(3, 2))
        >>> batch = estimator.gather([[2]])
        >>> expected = torch.tensor([[1.0, 0.0]])
        >>> nn.functional.binary_cross_entropy_with_logits(batch.log_odds, expected).backward()
        >>> estimator.step(batch)
        >>> estimator.log_odds
        tensor([[ 0.0000,  0.0000],
                [ 0.0000,  0.0000],
                [ 0.0100, -0.0100]])
    """

    log_odds: Tensor
    mean_gradient: Tensor
    mean_squared_gradient: Tensor
    steps: Tensor

    def __init__(
        self,
        log_odds: Tensor,
        *,
        learning_rate: float = 0.01,
        weight_decay: float = 0.0,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        variant: SewingVariant = "paper",
    ):
        super().__init__()
        _check_label_estimator_settings(learning_rate, weight_decay, beta_1, beta_2, variant)
        initial = validate_pseudolabel_image_scores(log_odds).detach().clone()
        self.register_buffer("log_odds", initial)
        self.register_buffer("mean_gradient", torch.zeros_like(initial))
        self.register_buffer("mean_squared_gradient", torch.zeros_like(initial))
        self.register_buffer("steps", torch.zeros(len(initial), 1, dtype=torch.int64))
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.beta_1, self.beta_2, self.variant = beta_1, beta_2, variant

    def gather(self, rows: Sequence[Sequence[int]]) -> EstimatorBatch:
        """Return a copy of the log-odds of all images on a batch of canvases.

        Args:
            rows: For each canvas, the row numbers of its images.

        Raises:
            InputError: If there is no canvas, a canvas has no image, or a row number is out of
                range.
        """
        if not rows or not all(len(canvas) for canvas in rows):
            raise InputError(
                "rows must contain at least one canvas, and one row number or more for each "
                f"canvas; got {list(rows)}. Remove canvases without images."
            )
        used_rows = sorted({int(row) for canvas in rows for row in canvas})
        if used_rows[0] < 0 or used_rows[-1] >= len(self.log_odds):
            wrong_row = used_rows[0] if used_rows[0] < 0 else used_rows[-1]
            last = len(self.log_odds) - 1
            raise InputError(
                f"rows must contain row numbers of the estimator, 0 to {last}; got {wrong_row}."
            )
        position = {row: i for i, row in enumerate(used_rows)}
        row_numbers = torch.tensor(used_rows, device=self.log_odds.device)
        return EstimatorBatch(
            self.log_odds[row_numbers].requires_grad_(),
            row_numbers,
            [[position[int(row)] for row in canvas] for canvas in rows],
        )

    @torch.no_grad()
    def step(self, batch: EstimatorBatch) -> None:
        """Update the log-odds with the gradient that a batch has accumulated.

        Raises:
            InputError: If ``batch.log_odds`` has no gradient.
        """
        gradient = batch.log_odds.grad
        if gradient is None:
            raise InputError(
                "batch.log_odds must have a gradient; got none. Call backward() on the loss first."
            )
        rows = batch.rows
        if self.variant == "code":
            zeros = torch.zeros_like(self.log_odds)
            gradient = zeros.index_copy(0, rows, gradient)
            rows = torch.arange(len(zeros), device=rows.device)
        self.steps[rows] += 1
        self.mean_gradient[rows] = torch.lerp(gradient, self.mean_gradient[rows], self.beta_1)
        self.mean_squared_gradient[rows] = torch.lerp(
            gradient.square(), self.mean_squared_gradient[rows], self.beta_2
        )
        decayed = (1 - self.learning_rate * self.weight_decay) * self.log_odds[rows]
        self.log_odds[rows] = decayed - self.learning_rate * self._adam_direction(rows)

    def _adam_direction(self, rows: Tensor) -> Tensor:
        """Return Adam's update: mean gradient over root mean square, with bias correction."""
        steps, dtype = self.steps[rows].double(), self.mean_gradient.dtype
        mean = self.mean_gradient[rows] / (1 - self.beta_1**steps).to(dtype)
        mean_square = self.mean_squared_gradient[rows] / (1 - self.beta_2**steps).to(dtype)
        return mean / (mean_square.sqrt() + EPSILON)


def _check_label_estimator_settings(
    learning_rate: float, weight_decay: float, beta_1: float, beta_2: float, variant: str
) -> None:
    if not 0 < learning_rate < float("inf"):
        raise ConfigError(f"learning_rate must be above 0, such as 0.01; got {learning_rate!r}.")
    if not 0 <= learning_rate * weight_decay <= 1:
        raise ConfigError(f"weight_decay must be in [0, 1 / learning_rate]; got {weight_decay!r}.")
    for name, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
        if not 0 <= beta < 1:
            raise ConfigError(f"{name} must be in [0, 1); got {beta!r}.")
    if variant not in ("paper", "code"):
        raise ConfigError(
            'variant must be "paper" (update rows of the batch) or "code" (update all rows); '
            f"got {variant!r}."
        )
