"""One region for each label."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from surelabel.transport.plan import Plan
from surelabel.transport.problem import Problem


def bipartite(cost: Tensor, rows: Tensor, columns: Tensor) -> Plan:
    """Give each label one region of its own, at the least cost in all (Hungarian algorithm).

        P_ij = v_j where region i is that of label j, else 0

    Where there are more labels than regions, regions are shared, each by as few labels as can be.

    Args:
        cost: Of a region for a label, ``(n, p, c)``, finite.
        rows: Weights of the regions, ``(n, p)``, sum 1 in each picture; only whether they are 0
            counts: a region without weight speaks for no label.
        columns: Weights of the labels (v), ``(n, c)``, sum 1 in each picture.

    Returns:
        The plan; the sums of labels are exact, those of regions whatever they come to. Solved on
        the processor, picture by picture.

    Raises:
        InputError: shapes differ, a cost is not finite, or weights do not sum to 1.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, Table 5 (b) and A.4.

    Differs:
        The paper has no numbers for more labels than regions; that regions are shared there is
        ours. Costs count by the weight of their label, which the paper has equal.

    Example:
        >>> half = torch.tensor([[0.5, 0.5]])
        >>> bipartite(torch.tensor([[[0.0, 0.2], [0.1, 1.0]]]), half, half).matrix
        tensor([[[0.0000, 0.5000],
                 [0.5000, 0.0000]]])
    """
    problem = Problem.of(cost, rows, columns)
    chosen = torch.zeros_like(problem.cost)
    charges = (problem.cost.double() * problem.columns[:, None]).cpu().numpy()
    for picture, regions in enumerate((problem.rows > 0).cpu().numpy()):
        usable = np.flatnonzero(regions)
        mine = _region_of_each_label(charges[picture, usable])
        chosen[picture, torch.from_numpy(usable[mine]), torch.arange(len(mine))] = 1
    return Plan.exact(chosen, torch.ones_like(problem.rows), problem.columns)


def _region_of_each_label(charges: np.ndarray) -> np.ndarray:
    """Row numbers of the cheapest assignment, ``(c)``; each row at most ``ceil(c / p)`` times."""
    regions, labels = charges.shape
    seats = np.repeat(charges, -(-labels // regions), axis=0)
    rows, columns = linear_sum_assignment(seats)
    found: np.ndarray = (rows * regions // len(seats))[np.argsort(columns)]
    return found
