"""Define optimal-transport solvers ``solver(cost, rows, columns, *, settings) -> TransportPlan``.

A transport plan contains the weight of each region of an image for each label. The cost has the
shape ``(n, p, c)`` for n images, p regions and c labels. The marginals are the weights of the
regions, ``rows`` ``(n, p)``, and of the labels, ``columns`` ``(n, c)``. Each marginal sums to 1 in
each image. To add a solver, add one line to ``TRANSPORTS``.
"""

from collections.abc import Callable

from surelabel.transport.accelerated_sinkhorn import accelerated_sinkhorn
from surelabel.transport.average import average
from surelabel.transport.bipartite import bipartite
from surelabel.transport.matching.knowledge_constraints import (
    add_knowledge_constraint_to_cost,
    knowledge_constrained_cost,
    knowledge_constrained_log_teacher_plan,
    knowledge_constrained_region_weights,
)
from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.sinkhorn.sinkhorn import sinkhorn
from surelabel.transport.softmax import softmax

TRANSPORTS: dict[str, Callable[..., TransportPlan]] = {
    "accelerated_sinkhorn": accelerated_sinkhorn,
    "average": average,
    "bipartite": bipartite,
    "sinkhorn": sinkhorn,
    "softmax": softmax,
}

__all__ = [
    "TRANSPORTS",
    "TransportPlan",
    "accelerated_sinkhorn",
    "add_knowledge_constraint_to_cost",
    "average",
    "bipartite",
    "knowledge_constrained_cost",
    "knowledge_constrained_log_teacher_plan",
    "knowledge_constrained_region_weights",
    "sinkhorn",
    "softmax",
]
