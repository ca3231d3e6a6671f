"""Average pooling over regions as a transport plan."""

from torch import Tensor

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import TransportProblem


def average(cost: Tensor, rows: Tensor, columns: Tensor) -> TransportPlan:
    """Return the product of the marginals: each label weights the regions by their marginal.

        P_ij = u_i · v_j

    With equal region weights this is average pooling over the regions.

    Args:
        cost: Only the shape is used, ``(n, p, c)``, finite.
        rows: Weights of the regions (u), ``(n, p)``, sum 1 in each image.
        columns: Weights of the labels (v), ``(n, c)``, sum 1 in each image.

    Returns:
        The transport plan; both marginals are exact.

    Raises:
        InputError: If the shapes differ, a cost is not finite, or weights do not sum to 1.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, Table 5 (c) and A.4.

    Differs:
        Regions may have unequal weights, such as ``label_presence_weights``; in the paper they
        are equal.

    Example:
        >>> import torch
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> average(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), half, half).matrix
        tensor([[[0.2500, 0.2500],
                 [0.2500, 0.2500]]])
    """
    problem = TransportProblem.from_tensors(cost, rows, columns)
    ones = problem.cost.new_ones(1, 1, 1).expand_as(problem.cost)
    return TransportPlan.closed_form(ones, problem.rows, problem.columns)
