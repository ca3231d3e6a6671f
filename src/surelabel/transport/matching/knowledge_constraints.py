"""Knowledge-constrained optimal transport: cost, region weights and teacher plan.

All are computed from similarities, the cosines of regions and labels ``(n, p, c)``. Compute
similarities in float32 or float64. In half precision the rounding error of a cosine is up to
2e-4; with a sharpness of 100, this is an error of 2 % of a softmax share. No function here
propagates gradients.

    cost, regularization = add_teacher_to_cost(
        matching_cost(similarities), log_teacher_plan(frozen_similarities, positive)
    )
    rows = label_presence_weights(similarities)
    plan = sinkhorn(cost, rows, columns, regularization=regularization)
"""

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes
from surelabel.transport.matching.transport_problem import check_positive_settings


def matching_cost(similarities: Tensor, *, sharpness: float = 100.0) -> Tensor:
    """Return the cost of each region for each label: 1 minus the softmax over labels.

        C_ij = 1 - softmax over labels (sharpness · S_ij)

    Args:
        similarities: Cosines of regions and labels (S), ``(n, p, c)``.
        sharpness: Factor of the cosines (tau), > 0; that of CLIP is 100.

    Returns:
        Costs in [0, 1], ``(n, p, c)``, float32 or float64, without gradient. The costs of a region
        sum to c - 1; with one label they are 0.

    Raises:
        InputError: If the axes of ``similarities`` are not ``(n, p, c)``.
        ConfigError: If ``sharpness`` is not above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 7.

    Example:
        >>> matching_cost(torch.tensor([[[0.20, 0.21], [0.25, 0.22]]])).round(decimals=4)
        tensor([[[0.7311, 0.2689],
                 [0.0474, 0.9526]]])
    """
    check_positive_settings(sharpness=sharpness)
    return 1 - _softmax_over_labels(similarities, sharpness)


def label_presence_weights(similarities: Tensor, *, temperature: float = 0.1) -> Tensor:
    """Return region weights: the softmax over regions of the highest similarity to a label.

        u_i = softmax over regions (max_j S_ij / temperature)

    Args:
        similarities: Cosines of regions and labels (S), ``(n, p, c)``.
        temperature: Temperature of the softmax, > 0.

    Returns:
        Weights that sum to 1 over the regions, ``(n, p)``, float32 or float64, without gradient.

    Raises:
        InputError: If the axes of ``similarities`` are not ``(n, p, c)``.
        ConfigError: If ``temperature`` is not above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 8.

    Differs:
        The temperature is that of the released code; the paper states none.

    Example:
        >>> label_presence_weights(torch.tensor([[[0.20, 0.21], [0.31, 0.22]]])).round(decimals=4)
        tensor([[0.2689, 0.7311]])
    """
    check_shapes(similarities=(similarities, "n p c"))
    check_positive_settings(temperature=temperature)
    return (_detach_to_float32(similarities).amax(2) / temperature).softmax(1)


def log_teacher_plan(
    similarities: Tensor, positive: Tensor, *, sharpness: float = 100.0, focus: float = 20.0
) -> Tensor:
    """Return the logarithm of the teacher plan, computed from a frozen model's similarities.

        log P~_ij = log softmax over regions (focus · W_ij)   where label j is positive, else 0
        with W = softmax over labels (sharpness · S)

    Args:
        similarities: Cosines of regions and labels of the frozen model (S), ``(n, p, c)``.
        positive: True where the label is positive, ``(n, c)``; False where it is negative or
            unknown. The teacher has no effect on the other labels: a constant column of its
            logarithm does not change the transport plan.
        sharpness: Factor of the cosines, > 0.
        focus: Factor of W before the softmax over regions, > 0.

    Returns:
        Logarithms <= 0, ``(n, p, c)``, float32 or float64, without gradient.

    Raises:
        InputError: If the shapes of ``similarities`` and ``positive`` differ.
        ConfigError: If a setting is not above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 9.

    Differs:
        The released code uses the smallest entry of the whole batch for labels that are not
        positive. The transport plan is the same: its marginals are fixed, so such labels receive
        as much mass as others. Both factors are those of the released code.

    Example:
        >>> similarities = torch.tensor([[[0.20, 0.21], [0.25, 0.22]]])
        >>> positive = torch.tensor([[True, False]])
        >>> log_teacher_plan(similarities, positive, focus=2.0).round(decimals=4)
        tensor([[[-1.5942,  0.0000],
                 [-0.2270,  0.0000]]])
    """
    check_shapes(similarities=(similarities, "n p c"), positive=(positive, "n c"))
    check_positive_settings(sharpness=sharpness, focus=focus)
    logs = (focus * _softmax_over_labels(similarities, sharpness)).log_softmax(1)
    return torch.where(positive.bool()[:, None], logs, 0.0)


def add_teacher_to_cost(
    cost: Tensor, log_teacher: Tensor, *, entropy_weight: float = 0.1, teacher_weight: float = 0.05
) -> tuple[Tensor, float]:
    """Convert transport with a divergence from a teacher plan to entropic transport.

        min <C, P> - lambda1 · H(P) + lambda2 · KL(P || P~)
          = min <C - lambda2 · log P~, P> - (lambda1 + lambda2) · H(P)

    Args:
        cost: Cost of each region for each label (C), ``(n, p, c)``.
        log_teacher: Logarithm of the teacher plan (P~), ``(n, p, c)``, finite.
        entropy_weight: Weight of the entropy (lambda1), > 0.
        teacher_weight: Weight of the divergence from the teacher plan (lambda2), >= 0.

    Returns:
        The cost and the regularization for ``sinkhorn``, without gradient.

    Raises:
        InputError: If the shapes of ``cost`` and ``log_teacher`` differ.
        ConfigError: If a weight is out of range.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 6, 10 and 11,
        derived in eq. 16 to 18.

    Example:
        >>> log_teacher = torch.tensor([[[-4.0, 0.0]]])
        >>> cost, regularization = add_teacher_to_cost(torch.ones(1, 1, 2), log_teacher)
        >>> cost, round(regularization, 4)
        (tensor([[[1.2000, 1.0000]]]), 0.15)
    """
    check_shapes(cost=(cost, "n p c"), log_teacher=(log_teacher, "n p c"))
    check_positive_settings(entropy_weight=entropy_weight)
    if not teacher_weight >= 0:
        raise ConfigError(f"teacher_weight must be 0 or greater; got {teacher_weight}.")
    teacher_cost = _detach_to_float32(cost) - teacher_weight * _detach_to_float32(log_teacher)
    return teacher_cost, entropy_weight + teacher_weight


def _softmax_over_labels(similarities: Tensor, sharpness: float) -> Tensor:
    """Return the softmax over labels of ``sharpness · similarities``, without gradient."""
    check_shapes(similarities=(similarities, "n p c"))
    return (sharpness * _detach_to_float32(similarities)).softmax(2)


def _detach_to_float32(values: Tensor) -> Tensor:
    """Return values without gradient, in float32 or float64."""
    return values.detach().to(torch.promote_types(values.dtype, torch.float32))
