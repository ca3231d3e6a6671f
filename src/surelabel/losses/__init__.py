"""Loss functions, each called as ``loss(scores, targets, *, settings) -> (n, c)``.

To add a loss, add one line to each table.

Losses in ``SET_LOSSES`` compare labels with each other and therefore need the mask of known
targets: ``loss(scores, targets, known, *, settings) -> ()``.

``LINK_OF_LOSS[name](**settings)`` returns the link that converts the scores of a head, trained with
the loss ``name`` and the same settings, to log-odds. If the scores of a loss cannot be converted to
log-odds, ``LINK_OF_LOSS[name]`` is None.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.links import SPA, Focal, Link, Sigmoid
from surelabel.losses.asymmetric import asymmetric
from surelabel.losses.binary import binary
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
    "info_nce": info_nce,
    "multi_matching": multi_matching,
    "ranking": ranking,
    "two_way": two_way,
}
LINK_OF_LOSS: dict[str, Callable[..., Link] | None] = {
    "asymmetric": Focal,
    "binary": Sigmoid,
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
    "focal",
    "focal_loss_link",
    "info_nce",
    "multi_matching",
    "ranking",
    "spa",
    "two_way",
]
