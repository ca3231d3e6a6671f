"""Fit linear heads with an L2 penalty, whose strength is selected by cross-validation."""

from dataclasses import dataclass

import torch
from torch import Tensor

from surelabel.links import Link
from surelabel.training.column_lbfgs import minimize_columns
from surelabel.training.objective import ElementLoss

PENALTIES = tuple(10.0 ** (step / 3) for step in range(6, -13, -1))  # 100, 46.4, 21.5 … 0.0001
PATIENCE = 2  # number of penalties without a lower loss after which the search for a label ends
TOLERANCE = 1e-3  # norm of the gradient, relative to the gradient of heads without weights
SELECTION_TOLERANCE = 1e-2  # relative norm of the gradient while penalties are compared


@dataclass(frozen=True)
class LinearHeads:
    """Linear heads of c labels on vectors of width d.

    Attributes:
        weights: Weight vectors, ``(c, d)``.
        biases: Biases, ``(c,)``.
        penalties: Penalty of each label, ``(c,)``.
    """

    weights: Tensor
    biases: Tensor
    penalties: Tensor


def fit_linear_heads(
    vectors: Tensor,
    targets: Tensor,
    known: Tensor,
    penalties: Tensor,
    *,
    loss: ElementLoss,
    link: Link,
) -> LinearHeads:
    """Return the linear heads with the lowest penalized loss, up to a small gradient.

        sum over known targets of label c: loss(w_c · x + b_c, target) + penalty_c / 2 · |w_c|²

    If the known targets of a label are all positive or all negative, or there are none, its weights
    are 0. Its bias is then log((P + 0.5) / (N + 0.5)), converted to a score by ``link``, for P
    positive and N negative targets.

    Args:
        vectors: Vectors of n images, ``(n, d)``, whose mean is about 0.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        penalties: Penalty of each label, ``(c,)``, above 0. A penalty corresponds to 1 / C of
            logistic regression in scikit-learn.
        loss: Loss of each score and target, an entry of ``LOSSES``.
        link: Link of the loss.

    Source:
        Le Cessie and van Houwelingen, Ridge Estimators in Logistic Regression, Applied Statistics,
        1992, for the binary loss.

    Differs:
        The loss can be any entry of ``LOSSES``.

    Example:
        >>> from surelabel.links import Sigmoid
        >>> from surelabel.losses import binary
        >>> vectors, targets = torch.tensor([[-1.0], [1.0]]), torch.tensor([[0.0], [1.0]])
        >>> heads = fit_linear_heads(
        ...     vectors, targets, targets >= 0, torch.ones(1), loss=binary, link=Sigmoid()
        ... )
        >>> round(heads.weights.item(), 2)  # the solution of w = 2 / (1 + exp(w))
        0.67
    """
    problem = _PenalizedProblem(vectors, targets, known, loss, link)
    parameters = problem.solve(problem.start, penalties, TOLERANCE)
    return LinearHeads(parameters[:-1].T, parameters[-1], penalties)


def select_penalties(
    vectors: Tensor,
    targets: Tensor,
    known: Tensor,
    fold: Tensor,
    *,
    loss: ElementLoss,
    link: Link,
) -> Tensor:
    """Return the penalty of each label with the lowest cross-validated loss, ``(c,)``.

    The heads of all folds and labels are fitted at once. The penalties decrease from 100 to 0.0001,
    and each fit starts at the solution of the previous penalty. The search for a label ends after
    two penalties in succession without a lower loss. If penalties have equal losses, the largest is
    returned.

    Args:
        vectors: Vectors of n images, ``(n, d)``, whose mean is about 0.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        fold: Fold of each image, ``(n,)``, from 0.
        loss: Loss of each score and target, an entry of ``LOSSES``.
        link: Link of the loss.

    Source:
        Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, Journal of the
        Royal Statistical Society B, 1974.
    """
    n_labels, folds = targets.shape[1], int(fold.max()) + 1
    is_held_out = fold[:, None] == torch.arange(folds)  # (n, folds)
    labels = torch.arange(n_labels)  # labels whose search for a weaker penalty continues
    best, losses = torch.full((n_labels,), PENALTIES[0]), torch.full((n_labels,), torch.inf)
    n_worse, parameters = torch.zeros(n_labels), None
    for penalty in PENALTIES:
        known_of_labels, targets_of_labels = known[:, labels], targets[:, labels].repeat(1, folds)
        in_training = (~is_held_out[:, :, None] & known_of_labels[:, None]).flatten(1)
        problem = _PenalizedProblem(vectors, targets_of_labels, in_training, loss, link)
        parameters = problem.start if parameters is None else parameters
        penalties = torch.full((folds * len(labels),), penalty)
        parameters = problem.solve(parameters, penalties, SELECTION_TOLERANCE)
        held_out = (is_held_out[:, :, None] & known_of_labels[:, None]).flatten(1)
        elements = loss(problem.scores(parameters), targets_of_labels) * held_out
        new = elements.sum(dim=0).view(folds, -1).sum(dim=0)
        is_better = new < losses[labels]
        best[labels[is_better]], losses[labels[is_better]] = penalty, new[is_better]
        n_worse[labels] = torch.where(is_better, 0.0, n_worse[labels] + 1)
        is_searched = n_worse[labels] < PATIENCE
        if not is_searched.any():
            break
        labels, parameters = labels[is_searched], parameters[:, is_searched.repeat(folds)]
    return best


class _PenalizedProblem:
    """Minimization problem of the penalized losses of k heads, one per column of the targets.

    Attributes:
        start: Heads with weights of 0, ``(d + 1, k)``. The last row contains the biases.
    """

    def __init__(
        self, vectors: Tensor, targets: Tensor, known: Tensor, loss: ElementLoss, link: Link
    ):
        weights = known.to(vectors.dtype)
        n_known, n_positives = weights.sum(dim=0), (targets * weights).sum(dim=0)
        has_both_classes = (n_positives > 0) & (n_positives < n_known)
        self._vectors, self._targets, self._loss = vectors, targets, loss
        self._known = weights * has_both_classes
        self.start = vectors.new_zeros(vectors.shape[1] + 1, targets.shape[1])
        self.start[-1] = link.scores(((n_positives + 0.5) / (n_known - n_positives + 0.5)).log())
        self._columns = columns = torch.arange(targets.shape[1])
        self._slices = self._targets, self._known  # of the previous columns
        _, gradients = self._value_and_gradient(self.start, columns, columns * 0.0)
        self._gradient_scale = gradients.norm(dim=0)

    def scores(self, parameters: Tensor) -> Tensor:
        """Return the scores ``(n, k)`` of heads ``(d + 1, k)``."""
        return self._vectors @ parameters[:-1] + parameters[-1]

    def solve(self, start: Tensor, penalties: Tensor, tolerance: float) -> Tensor:
        """Return the heads ``(d + 1, k)`` with the lowest penalized losses."""
        return minimize_columns(
            lambda parameters, columns: self._value_and_gradient(parameters, columns, penalties),
            start,
            gradient_scale=self._gradient_scale,
            tolerance=tolerance,
        )

    def _value_and_gradient(
        self, parameters: Tensor, columns: Tensor, penalties: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the penalized losses ``(m,)`` of m columns, and their gradients."""
        if columns is not self._columns:  # slices are as expensive as an evaluation
            self._columns = columns
            self._slices = self._targets[:, columns], self._known[:, columns]
        (targets, known), penalties = self._slices, penalties[columns]
        with torch.enable_grad():
            scores = self.scores(parameters).requires_grad_()
            values = (self._loss(scores, targets) * known).sum(dim=0)
            (slopes,) = torch.autograd.grad(values.sum(), scores)
        weights = parameters[:-1]
        values = values.detach() + penalties / 2 * weights.square().sum(dim=0)
        gradients = self._vectors.T @ slopes + penalties * weights
        return values, torch.cat([gradients, slopes.sum(dim=0, keepdim=True)])
