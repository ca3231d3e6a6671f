"""Compute softmax attention of each label over the regions as a transport plan."""

import torch
from torch import Tensor

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import (
    TransportProblem,
    check_positive_transport_settings,
)


def softmax(
    cost: Tensor, rows: Tensor, columns: Tensor, *, temperature: float = 0.1
) -> TransportPlan:
    """Weight the regions for each label independently, by a softmax over the regions.

        P_ij = v_j · u_i exp(-C_ij / temperature) / Σ_k u_k exp(-C_kj / temperature)

    In this formula, P is the transport plan, C is the cost, u_i is the prior weight of region i and
    v_j is the weight of label j. Among all plans with the given label weights, P minimizes
    ``Σ_ij C_ij · P_ij + temperature · KL(P || Q)``, where Q_ij = u_i · v_j and KL is the
    Kullback-Leibler divergence. In contrast to ``sinkhorn``, the region marginal is not
    constrained, so a single region may receive the whole weight of all labels.

    Args:
        cost: Cost of each region for each label (C), ``(n, p, c)`` for n images, p regions and c
            labels, finite.
        rows: Prior weights of the regions (u), ``(n, p)``, with sum 1 in each image.
        columns: Weights of the labels (v), ``(n, c)``, with sum 1 in each image.
        temperature: Temperature of the softmax, > 0, in units of cost.

    Returns:
        Transport plan. The label marginal is exact, and the region marginal is not constrained.

    Raises:
        InputError: If the shapes differ, if a cost is not finite, or if weights are negative or do
            not sum to 1.
        ConfigError: If ``temperature`` is not a finite number above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, Table 5 (d) and A.4.

    Differs:
        The authors apply the softmax to similarities and state no temperature. Here the softmax is
        applied to the negative cost, and the default temperature equals the default regularization
        of ``sinkhorn``. Regions may have unequal prior weights.

    Example:
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> cost = torch.tensor([[[0.0, 0.2], [0.1, 0.5]]])
        >>> softmax(cost, half, half).matrix.round(decimals=4)
        tensor([[[0.3655, 0.4763],
                 [0.1345, 0.0237]]])
    """
    check_positive_transport_settings(temperature=temperature)
    problem = TransportProblem.from_tensors(cost, rows, columns)
    potentials = problem.rows.log()
    shares = (potentials[:, :, None] - problem.cost / temperature).softmax(1)
    return TransportPlan.closed_form(
        shares,
        torch.ones_like(problem.rows),
        problem.columns,
        region_potentials=potentials,
        regularization=temperature,
    )
