"""Each label chooses its regions alone."""

import torch
from torch import Tensor

from surelabel.transport.plan import Plan
from surelabel.transport.problem import Problem, check_above_zero


def softmax(cost: Tensor, rows: Tensor, columns: Tensor, *, temperature: float = 0.1) -> Plan:
    """Each label weighs the regions by itself, by a softmax over them.

        P_ij = v_j · u_i exp(-C_ij / temperature) / Σ_k u_k exp(-C_kj / temperature)

    Of all plans whose labels get their weights it is the one with the least
    ``<C, P> + temperature · KL(P || u v)``: Sinkhorn without the promise to the regions, so that
    one region may speak for all labels.

    Args:
        cost: Of a region for a label (C), ``(n, p, c)``, finite.
        rows: Weights of the regions beforehand (u), ``(n, p)``, sum 1 in each picture.
        columns: Weights of the labels (v), ``(n, c)``, sum 1 in each picture.
        temperature: How evenly a label spreads over regions, > 0, in units of cost.

    Returns:
        The plan; the sums of labels are exact, those of regions whatever they come to.

    Raises:
        InputError: shapes differ, a cost is not finite, or weights do not sum to 1.
        ConfigError: ``temperature`` is not above 0.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, Table 5 (d) and A.4.

    Differs:
        The paper names no temperature and weighs similarities; here it is the cost, at the
        temperature at which Sinkhorn works. Regions may have unequal weights beforehand.

    Example:
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> cost = torch.tensor([[[0.0, 0.2], [0.1, 0.5]]])
        >>> softmax(cost, half, half).matrix.round(decimals=4)
        tensor([[[0.3655, 0.4763],
                 [0.1345, 0.0237]]])
    """
    check_above_zero(temperature=temperature)
    problem = Problem.of(cost, rows, columns)
    shares = (problem.rows.log()[:, :, None] - problem.cost / temperature).softmax(1)
    return Plan.exact(shares, torch.ones_like(problem.rows), problem.columns)
