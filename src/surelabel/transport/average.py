"""Return average pooling over regions as a transport plan."""

from torch import Tensor

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import TransportProblem


def average(cost: Tensor, rows: Tensor, columns: Tensor) -> TransportPlan:
    """Return the transport plan that is the product of the region and label weights.

        P_ij = u_i · v_j

    In this formula, P is the transport plan, u_i is the weight of region i and v_j is the weight of
    label j. If all regions have equal weights, the plan is average pooling over the regions.

    Args:
        cost: Cost of each region for each label, ``(n, p, c)`` for n images, p regions and c
            labels, finite. The values have no effect on the plan.
        rows: Weights of the regions (u), ``(n, p)``, with sum 1 in each image.
        columns: Weights of the labels (v), ``(n, c)``, with sum 1 in each image.

    Returns:
        Transport plan, with exact marginals of regions and labels.

    Raises:
        InputError: If the shapes differ, if a cost is not finite, or if weights are negative or do
            not sum to 1.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, Table 5 (c) and A.4.

    Differs:
        Regions may have unequal weights, such as the output of
        ``knowledge_constrained_region_weights``; the authors use equal weights.

    Example:
        >>> import torch
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> average(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), half, half).matrix
        tensor([[[0.2500, 0.2500],
                 [0.2500, 0.2500]]])
    """
    problem = TransportProblem.from_tensors(cost, rows, columns)
    ones = problem.cost.new_ones(1, 1, 1).expand_as(problem.cost)
    return TransportPlan.closed_form(
        ones, problem.rows, problem.columns, region_potentials=problem.rows.log()
    )
