"""Transports: ``transport(cost, rows, columns, *, settings) -> Plan``. Add one line for a new one.

A plan says how much each region of a picture speaks for each label. Costs are ``(n p c)``, the
weights of regions (rows) ``(n p)`` and of labels (columns) ``(n c)``; each sums to 1 in a picture.
"""

from collections.abc import Callable

from surelabel.transport.average import average
from surelabel.transport.bipartite import bipartite
from surelabel.transport.knowledge import (
    constrained,
    label_presence,
    log_teacher,
    matching_cost,
)
from surelabel.transport.plan import Plan
from surelabel.transport.sinkhorn import sinkhorn
from surelabel.transport.softmax import softmax

TRANSPORTS: dict[str, Callable[..., Plan]] = {
    "average": average,
    "bipartite": bipartite,
    "sinkhorn": sinkhorn,
    "softmax": softmax,
}

__all__ = [
    "TRANSPORTS",
    "Plan",
    "average",
    "bipartite",
    "constrained",
    "label_presence",
    "log_teacher",
    "matching_cost",
    "sinkhorn",
    "softmax",
]
