"""Transports: ``transport(cost, rows, columns, *, settings) -> TransportPlan``.

A transport plan contains the weight of each region of an image for each label. The cost is
``(n, p, c)``, the marginal of the regions (rows) ``(n, p)`` and that of the labels (columns)
``(n, c)``. Each marginal sums to 1 in an image. Add one line to ``TRANSPORTS`` for a new
transport.
"""

from collections.abc import Callable

from surelabel.transport.average import average
from surelabel.transport.bipartite import bipartite
from surelabel.transport.matching.knowledge_constraints import (
    add_teacher_to_cost,
    label_presence_weights,
    log_teacher_plan,
    matching_cost,
)
from surelabel.transport.matching.transport_plan import TransportPlan
from surelabel.transport.sinkhorn.sinkhorn import sinkhorn
from surelabel.transport.softmax import softmax

TRANSPORTS: dict[str, Callable[..., TransportPlan]] = {
    "average": average,
    "bipartite": bipartite,
    "sinkhorn": sinkhorn,
    "softmax": softmax,
}

__all__ = [
    "TRANSPORTS",
    "TransportPlan",
    "add_teacher_to_cost",
    "average",
    "bipartite",
    "label_presence_weights",
    "log_teacher_plan",
    "matching_cost",
    "sinkhorn",
    "softmax",
]
