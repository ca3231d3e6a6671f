"""Compute cost, region weights and teacher plan of knowledge-constrained optimal transport.

Cost, region weights and teacher plan are computed from the cosine similarities of regions and
labels, ``(n, p, c)``. Compute the similarities in float32 or float64. In half precision, the
rounding error of a cosine is up to 2e-4. If cosines are multiplied by 100 (``sharpness``), the
relative error of the softmax is up to 2 %. The functions of this module do not propagate gradients.

    cost, regularization = add_knowledge_constraint_to_cost(
        knowledge_constrained_cost(similarities),
        knowledge_constrained_log_teacher_plan(frozen_similarities, positive),
    )
    rows = knowledge_constrained_region_weights(similarities)
    plan = sinkhorn(cost, rows, columns, regularization=regularization)
"""

import torch
from torch import Tensor

from surelabel.errors import ConfigError, InputError
from surelabel.shapes import check_shapes
from surelabel.transport.matching.transport_problem import check_positive_transport_settings


def knowledge_constrained_cost(
    similarities: Tensor,
    *,
    sharpness: float = 100.0,
    reference: Tensor | None = None,
    is_new: Tensor | None = None,
) -> Tensor:
    """Return the cost of each region for each label, which is 1 minus the softmax over labels.

        C_ij = 1 - softmax over labels (sharpness · S_ij)

    In this formula, C_ij is the cost of region i for label j, and S_ij is the cosine similarity of
    region i and label j.

    Args:
        similarities: Cosine similarities of n images, p regions and c labels (S), ``(n, p, c)``.
        sharpness: Factor of the cosine similarities (tau), > 0. CLIP uses a factor of 100.
        reference: Cosine similarities of regions and r reference labels, ``(n, p, r)``. If given,
            the softmax of a label is computed over the reference labels and the label itself, so
            that its cost is independent of the other labels.
        is_new: Mask of the labels that are not reference labels, ``(c,)``, required with
            ``reference``.

    Returns:
        Costs in [0, 1], ``(n, p, c)``, float32 or float64, without gradient. Without ``reference``,
        the costs of a region sum to c - 1 for c labels; if there is a single label, all costs are
        0.

    Raises:
        InputError: If the axes of ``similarities`` are not ``(n, p, c)``, if those of ``reference``
            or ``is_new`` do not match, or if only one of ``reference`` and ``is_new`` is given.
        ConfigError: If ``sharpness`` is not a finite number above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 7.

    Differs:
        The paper has no reference labels.

    Example:
        >>> similarities = torch.tensor([[[0.20, 0.21], [0.25, 0.22]]])
        >>> knowledge_constrained_cost(similarities).round(decimals=4)
        tensor([[[0.7311, 0.2689],
                 [0.0474, 0.9526]]])
    """
    check_positive_transport_settings(sharpness=sharpness)
    if (reference is None) != (is_new is None):
        only = "is_new" if reference is None else "reference"
        raise InputError(
            f"reference and is_new must be given together; got only {only}. Give both or neither."
        )
    if reference is None or is_new is None:
        return 1 - _knowledge_constraint_softmax(similarities, sharpness)
    check_shapes(
        similarities=(similarities, "n p c"), reference=(reference, "n p r"), is_new=(is_new, "c")
    )
    logits, reference_logits = (
        sharpness * _detach_for_knowledge_constraints(values)
        for values in (similarities, reference)
    )
    others = reference_logits.logsumexp(2, keepdim=True)
    return 1 - (logits - torch.where(is_new, torch.logaddexp(others, logits), others)).exp()


def knowledge_constrained_region_weights(
    similarities: Tensor, *, temperature: float = 0.1
) -> Tensor:
    """Return region weights, the softmax over regions of the highest similarity to any label.

        u_i = softmax over regions (max_j S_ij / temperature)

    In this formula, u_i is the weight of region i and S_ij is the cosine similarity of region i and
    label j.

    Args:
        similarities: Cosine similarities of n images, p regions and c labels (S), ``(n, p, c)``.
        temperature: Temperature of the softmax, > 0.

    Returns:
        Weights that sum to 1 over the regions, ``(n, p)``, float32 or float64, without gradient.

    Raises:
        InputError: If the axes of ``similarities`` are not ``(n, p, c)``.
        ConfigError: If ``temperature`` is not a finite number above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 8.

    Differs:
        The authors state no temperature; the default is the value in their released code.

    Example:
        >>> similarities = torch.tensor([[[0.20, 0.21], [0.31, 0.22]]])
        >>> knowledge_constrained_region_weights(similarities).round(decimals=4)
        tensor([[0.2689, 0.7311]])
    """
    check_shapes(similarities=(similarities, "n p c"))
    check_positive_transport_settings(temperature=temperature)
    return (_detach_for_knowledge_constraints(similarities).amax(2) / temperature).softmax(1)


def knowledge_constrained_log_teacher_plan(
    similarities: Tensor, positive: Tensor, *, sharpness: float = 100.0, focus: float = 20.0
) -> Tensor:
    """Return the logarithm of the teacher plan, computed from a frozen model's similarities.

        W_ij = softmax over labels (sharpness · S_ij)
        log P~_ij = log softmax over regions (focus · W_ij) if label j is positive, otherwise 0

    In these formulas, P~ is the teacher plan, and S_ij is the cosine similarity of region i and
    label j. W_ij is the softmax probability of label j in region i.

    Args:
        similarities: Cosine similarities of n images, p regions and c labels, computed by the
            frozen model (S), ``(n, p, c)``.
        positive: Mask of the positive labels, ``(n, c)``. If a label is negative or unknown, the
            teacher plan has no effect on the transport plan of the label.
        sharpness: Factor of the cosine similarities, > 0.
        focus: Factor of W before the softmax over regions, > 0.

    Returns:
        Logarithm of the teacher plan, <= 0, ``(n, p, c)``, float32 or float64, without gradient.

    Raises:
        InputError: If the axes of ``similarities`` and ``positive`` do not match.
        ConfigError: If ``sharpness`` or ``focus`` is not a finite number above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 9.

    Differs:
        For labels that are not positive, the authors' code uses the smallest value of the whole
        batch instead of 0. The converged transport plan is the same, because its marginals are
        fixed, and a constant that is added to all costs of a label has no effect. However,
        ``sinkhorn(variant="code")`` stops earlier than the released training code: on simulated
        CLIP features with 196 regions and 48 labels, after 4 steps instead of 12. The default
        factors are those of the authors' code.

    Example:
        >>> similarities = torch.tensor([[[0.20, 0.21], [0.25, 0.22]]])
        >>> positive = torch.tensor([[True, False]])
        >>> log_teacher = knowledge_constrained_log_teacher_plan(similarities, positive, focus=2.0)
        >>> log_teacher.round(decimals=4)
        tensor([[[-1.5942,  0.0000],
                 [-0.2270,  0.0000]]])
    """
    check_shapes(similarities=(similarities, "n p c"), positive=(positive, "n c"))
    check_positive_transport_settings(sharpness=sharpness, focus=focus)
    logs = (focus * _knowledge_constraint_softmax(similarities, sharpness)).log_softmax(1)
    return torch.where(positive.bool()[:, None], logs, 0.0)


def add_knowledge_constraint_to_cost(
    cost: Tensor, log_teacher: Tensor, *, entropy_weight: float = 0.1, teacher_weight: float = 0.05
) -> tuple[Tensor, float]:
    """Convert optimal transport with a teacher plan to entropy-regularized optimal transport.

        min <C, P> - lambda1 · H(P) + lambda2 · KL(P || P~)
          = min <C - lambda2 · log P~, P> - (lambda1 + lambda2) · H(P)

    In this equation, C is the cost, P is the transport plan, P~ is the teacher plan, and <C, P> is
    the sum of all C_ij · P_ij. H is the entropy, and KL is the Kullback-Leibler divergence.

    Args:
        cost: Cost of p regions for c labels in n images (C), ``(n, p, c)``.
        log_teacher: Logarithm of the teacher plan (P~), ``(n, p, c)``, finite.
        entropy_weight: Weight of the entropy (lambda1), > 0.
        teacher_weight: Weight of the divergence from the teacher plan (lambda2), >= 0.

    Returns:
        Arguments ``cost`` and ``regularization`` of ``sinkhorn``. The cost has no gradient.

    Raises:
        InputError: If the shapes of ``cost`` and ``log_teacher`` differ.
        ConfigError: If ``entropy_weight`` is not a finite number above 0, or if ``teacher_weight``
            is negative.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 6, 10 and 11,
        derived in eq. 16 to 18.

    Example:
        >>> log_teacher = torch.tensor([[[-4.0, 0.0]]])
        >>> cost = torch.ones(1, 1, 2)
        >>> cost, regularization = add_knowledge_constraint_to_cost(cost, log_teacher)
        >>> cost, round(regularization, 4)
        (tensor([[[1.2000, 1.0000]]]), 0.15)
    """
    check_shapes(cost=(cost, "n p c"), log_teacher=(log_teacher, "n p c"))
    check_positive_transport_settings(entropy_weight=entropy_weight)
    if not teacher_weight >= 0:
        raise ConfigError(f"teacher_weight must be 0 or greater; got {teacher_weight}.")
    cost, log_teacher = map(_detach_for_knowledge_constraints, (cost, log_teacher))
    teacher_cost = cost - teacher_weight * log_teacher
    return teacher_cost, entropy_weight + teacher_weight


def _knowledge_constraint_softmax(similarities: Tensor, sharpness: float) -> Tensor:
    """Return the softmax over labels of ``sharpness · similarities``, without gradient."""
    check_shapes(similarities=(similarities, "n p c"))
    return (sharpness * _detach_for_knowledge_constraints(similarities)).softmax(2)


def _detach_for_knowledge_constraints(values: Tensor) -> Tensor:
    """Return values without gradient, in float32 or float64."""
    return values.detach().to(torch.promote_types(values.dtype, torch.float32))
