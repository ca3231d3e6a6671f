"""Losses: ``loss(scores, targets, *, settings) -> (n, c)``. Add one line to each table here.

``LINK_OF[name](**settings of the loss)`` is the link that turns the scores of a head trained with
that loss into log-odds; None where no link can.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.links import Focal, Link, Sigmoid
from surelabel.losses.asymmetric import asymmetric
from surelabel.losses.binary import binary

LOSSES: dict[str, Callable[..., Tensor]] = {"asymmetric": asymmetric, "binary": binary}
LINK_OF: dict[str, Callable[..., Link] | None] = {"asymmetric": Focal, "binary": Sigmoid}

__all__ = ["LINK_OF", "LOSSES", "asymmetric", "binary"]
