"""Knowledge-constrained optimal transport: costs and weights from similarities, and a teacher.

Similarities are cosines of regions and labels, ``(n, p, c)``. Compute them in float32 at least: a
cosine in half precision is off by up to 2e-4, which the sharpness of 100 turns into 2 % of a share.
No gradient flows through any of these.

    cost, regularization = constrained(matching_cost(similarities), log_teacher(frozen, present))
    plan = sinkhorn(cost, label_presence(similarities), columns, regularization=regularization)
"""

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes
from surelabel.transport.problem import check_above_zero


def matching_cost(similarities: Tensor, *, sharpness: float = 100.0) -> Tensor:
    """What it costs to let a region speak for a label: small where the label suits it best of all.

        C_ij = 1 - softmax over labels (sharpness · S_ij)

    Args:
        similarities: Cosines of regions and labels (S), ``(n, p, c)``.
        sharpness: Factor of the cosines (tau), > 0; CLIP's own is 100.

    Returns:
        Costs in [0, 1], ``(n, p, c)``, float32 at least, without gradient. Those of a region sum to
        c - 1; with one label they are 0.

    Raises:
        InputError: ``similarities`` has other axes.
        ConfigError: ``sharpness`` is not above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 7.

    Example:
        >>> matching_cost(torch.tensor([[[0.20, 0.21], [0.25, 0.22]]])).round(decimals=4)
        tensor([[[0.7311, 0.2689],
                 [0.0474, 0.9526]]])
    """
    check_above_zero(sharpness=sharpness)
    return 1 - _shares_of_labels(similarities, sharpness)


def label_presence(similarities: Tensor, *, temperature: float = 0.1) -> Tensor:
    """How likely a region shows any of the labels: its weight in the matching.

        u_i = softmax over regions (max_j S_ij / temperature)

    Args:
        similarities: Cosines of regions and labels (S), ``(n, p, c)``.
        temperature: How evenly regions are weighed, > 0.

    Returns:
        Weights that sum to 1 over the regions, ``(n, p)``, float32 at least, without gradient.

    Raises:
        InputError: ``similarities`` has other axes.
        ConfigError: ``temperature`` is not above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 8.

    Differs:
        The temperature is that of the released code; the paper names none.

    Example:
        >>> label_presence(torch.tensor([[[0.20, 0.21], [0.31, 0.22]]])).round(decimals=4)
        tensor([[0.2689, 0.7311]])
    """
    check_shapes(similarities=(similarities, "n p c"))
    check_above_zero(temperature=temperature)
    return (_precise(similarities).amax(2) / temperature).softmax(1)


def log_teacher(
    similarities: Tensor, present: Tensor, *, sharpness: float = 100.0, focus: float = 20.0
) -> Tensor:
    """Where a frozen model sees the labels that are present, as logarithms.

        log P~_ij = log softmax over regions (focus · W_ij)   where label j is present, else 0
        with W = softmax over labels (sharpness · S)

    Args:
        similarities: Cosines of the frozen model's regions and labels (S), ``(n, p, c)``.
        present: True where the picture has the label, ``(n, c)``. What is absent or unknown is
            False: the teacher then says nothing, and the plan cannot depend on what else would
            stand there, because a constant in a column drops out.
        sharpness: Factor of the cosines, > 0.
        focus: Factor of the shares before the softmax over regions, > 0.

    Returns:
        Logarithms <= 0, ``(n, p, c)``, float32 at least, without gradient.

    Raises:
        InputError: ``similarities`` and ``present`` differ in shape.
        ConfigError: a setting is not above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 9.

    Differs:
        The released code puts the least entry of the whole batch where a label is absent. The plan
        is the same: its sums are fixed, so labels that are absent get as much mass as others. Both
        factors are those of the released code.

    Example:
        >>> seen = torch.tensor([[[0.20, 0.21], [0.25, 0.22]]])
        >>> log_teacher(seen, torch.tensor([[True, False]]), focus=2.0).round(decimals=4)
        tensor([[[-1.5942,  0.0000],
                 [-0.2270,  0.0000]]])
    """
    check_shapes(similarities=(similarities, "n p c"), present=(present, "n c"))
    check_above_zero(sharpness=sharpness, focus=focus)
    logs = (focus * _shares_of_labels(similarities, sharpness)).log_softmax(1)
    return torch.where(present.bool()[:, None], logs, 0.0)


def constrained(
    cost: Tensor, log_teacher: Tensor, *, entropy_weight: float = 0.1, teacher_weight: float = 0.05
) -> tuple[Tensor, float]:
    """Turn a matching that should stay near a teacher's plan into a plain one.

        min <C, P> - lambda1 · H(P) + lambda2 · KL(P || P~)
          = min <C - lambda2 · log P~, P> - (lambda1 + lambda2) · H(P)

    Args:
        cost: Of a region for a label (C), ``(n, p, c)``.
        log_teacher: Logarithms of the teacher's plan (P~), ``(n, p, c)``, finite.
        entropy_weight: Of the entropy (lambda1), > 0.
        teacher_weight: Of the distance from the teacher (lambda2), >= 0.

    Returns:
        The cost and the regularization for ``sinkhorn``; without gradient.

    Raises:
        InputError: ``cost`` and ``log_teacher`` differ in shape.
        ConfigError: a weight is out of range.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 6, 10 and 11,
        derived in eq. 16 to 18.

    Example:
        >>> cost, regularization = constrained(torch.ones(1, 1, 2), torch.tensor([[[-4.0, 0.0]]]))
        >>> cost, round(regularization, 4)
        (tensor([[[1.2000, 1.0000]]]), 0.15)
    """
    check_shapes(cost=(cost, "n p c"), log_teacher=(log_teacher, "n p c"))
    check_above_zero(entropy_weight=entropy_weight)
    if not teacher_weight >= 0:
        raise ConfigError(f"teacher_weight must be 0 or greater. Got {teacher_weight}.")
    changed = _precise(cost) - teacher_weight * _precise(log_teacher)
    return changed, entropy_weight + teacher_weight


def _shares_of_labels(similarities: Tensor, sharpness: float) -> Tensor:
    check_shapes(similarities=(similarities, "n p c"))
    return (sharpness * _precise(similarities)).softmax(2)


def _precise(values: Tensor) -> Tensor:
    """Without gradient, in float32 at least."""
    return values.detach().to(torch.promote_types(values.dtype, torch.float32))
