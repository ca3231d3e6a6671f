"""Assign one region to each label by bipartite matching."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.matching.transport_problem import TransportProblem


def bipartite(cost: Tensor, rows: Tensor, columns: Tensor) -> TransportPlan:
    """Assign one region to each label at the minimum total cost (Hungarian algorithm).

        P_ij = v_j if region i is assigned to label j, otherwise 0

    In this formula, P is the transport plan and v_j is the weight of label j. Only regions with a
    weight above 0 are assigned. If there are more labels (c) than such regions (p), each of these
    regions is assigned to at most ``ceil(c / p)`` labels.

    Args:
        cost: Cost of each region for each label, ``(n, p, c)`` for n images, p regions and c
            labels, finite.
        rows: Weights of the regions, ``(n, p)``, with sum 1 in each image. Regions of weight 0 are
            excluded; the other weights have no effect.
        columns: Weights of the labels (v), ``(n, c)``, with sum 1 in each image.

    Returns:
        Transport plan. The label marginal is exact, and the region marginal is not constrained. The
        assignment is solved on the CPU, one image at a time.

    Raises:
        InputError: If the shapes differ, if a cost is not finite, or if weights are negative or do
            not sum to 1.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, Table 5 (b) and A.4.

    Differs:
        The authors have no results for more labels than regions; the assignment of a region to
        several labels is ours. The costs of a label are multiplied by the weight of the label; the
        authors use equal weights.

    Example:
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> bipartite(torch.tensor([[[0.0, 0.2], [0.1, 1.0]]]), half, half).matrix
        tensor([[[0.0000, 0.5000],
                 [0.5000, 0.0000]]])
    """
    problem = TransportProblem.from_tensors(cost, rows, columns)
    assignment = torch.zeros_like(problem.cost)
    weighted_cost = (problem.cost.double() * problem.columns[:, None]).cpu().numpy()
    for image, has_weight in enumerate((problem.rows > 0).cpu().numpy()):
        regions = np.flatnonzero(has_weight)
        assigned = _bipartite_region_assignment(weighted_cost[image, regions])
        assignment[image, torch.from_numpy(regions[assigned]), torch.arange(len(assigned))] = 1
    return TransportPlan.closed_form(assignment, torch.ones_like(problem.rows), problem.columns)


def _bipartite_region_assignment(cost: np.ndarray) -> np.ndarray:
    """Return the region of each label in the assignment of minimum total cost, ``(c,)``.

    Each region is assigned to at most ``ceil(c / p)`` labels.
    """
    n_regions, n_labels = cost.shape
    repeated = np.repeat(cost, -(-n_labels // n_regions), axis=0)
    rows, columns = linear_sum_assignment(repeated)
    regions: np.ndarray = (rows * n_regions // len(repeated))[np.argsort(columns)]
    return regions
