"""Define the tables of loss functions, and the table of the link of each loss.

A loss in ``LOSSES`` is called as ``loss(scores, targets, *, settings)``. The loss returns one value
for each of ``n`` images and ``c`` labels, ``(n, c)``.

A loss in ``SET_LOSSES`` compares scores with each other and therefore needs the mask of known
targets. Such a loss is called as ``loss(scores, targets, known, *, settings)`` and returns a
scalar.

``LINK_OF_LOSS[name](**settings)`` returns the link that converts the scores of a head to log-odds.
The head must have been trained with the loss ``name`` and the same settings. If no link can convert
the scores of a loss to log-odds, ``LINK_OF_LOSS[name]`` is None.

To add a loss, add one line to ``LOSSES`` or ``SET_LOSSES``, and one line to ``LINK_OF_LOSS``.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.links import SPA, Focal, Link, Sigmoid
from surelabel.losses.asymmetric import asymmetric
from surelabel.losses.binary import binary
from surelabel.losses.contrastive import contrastive
from surelabel.losses.focal import focal, focal_loss_link
from surelabel.losses.info_nce import info_nce
from surelabel.losses.multi_matching import multi_matching
from surelabel.losses.ranking import ranking
from surelabel.losses.spa import spa
from surelabel.losses.two_way import two_way

LOSSES: dict[str, Callable[..., Tensor]] = {
    "asymmetric": asymmetric,
    "binary": binary,
    "focal": focal,
    "spa": spa,
}
SET_LOSSES: dict[str, Callable[..., Tensor]] = {
    "contrastive": contrastive,
    "info_nce": info_nce,
    "multi_matching": multi_matching,
    "ranking": ranking,
    "two_way": two_way,
}
LINK_OF_LOSS: dict[str, Callable[..., Link] | None] = {
    "asymmetric": Focal,
    "binary": Sigmoid,
    "contrastive": None,
    "focal": focal_loss_link,
    "info_nce": None,
    "multi_matching": None,
    "ranking": None,
    "spa": SPA,
    "two_way": None,
}

__all__ = [
    "LINK_OF_LOSS",
    "LOSSES",
    "SET_LOSSES",
    "asymmetric",
    "binary",
    "contrastive",
    "focal",
    "focal_loss_link",
    "info_nce",
    "multi_matching",
    "ranking",
    "spa",
    "two_way",
]
