"""Every region speaks for every label."""

from torch import Tensor

from surelabel.transport.plan import Plan
from surelabel.transport.problem import Problem


def average(cost: Tensor, rows: Tensor, columns: Tensor) -> Plan:
    """Every region speaks for every label, by its own weight only.

        P_ij = u_i · v_j

    With equal weights this is average pooling over the regions.

    Args:
        cost: Not used but for its shape, ``(n, p, c)``, finite.
        rows: Weights of the regions (u), ``(n, p)``, sum 1 in each picture.
        columns: Weights of the labels (v), ``(n, c)``, sum 1 in each picture.

    Returns:
        The plan; the sums of both sides are exact.

    Raises:
        InputError: shapes differ, a cost is not finite, or weights do not sum to 1.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, Table 5 (c) and A.4.

    Differs:
        Regions may have unequal weights, such as ``label_presence``; the paper's are equal.

    Example:
        >>> import torch
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> average(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), half, half).matrix
        tensor([[[0.2500, 0.2500],
                 [0.2500, 0.2500]]])
    """
    problem = Problem.of(cost, rows, columns)
    ones = problem.cost.new_ones(1, 1, 1).expand_as(problem.cost)
    return Plan.exact(ones, problem.rows, problem.columns)
