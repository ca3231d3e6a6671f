"""Links: ``link(*, settings)`` with ``.log_odds(scores)``, ``.logits(scores)`` and their inverse.

A link turns what a head gives (scores) into log-odds, without limits, and logits, the same in
[-40, 40]. Which link belongs to which loss stands in ``losses.LINK_OF``. Add one line here for a
new one.
"""

from collections.abc import Callable

from surelabel.links.focal import Focal
from surelabel.links.folded import Folded, fold, score_threshold, sigmoid_threshold
from surelabel.links.protocol import Link
from surelabel.links.sigmoid import Sigmoid
from surelabel.links.spa import SPA

LINKS: dict[str, Callable[..., Link]] = {"focal": Focal, "sigmoid": Sigmoid, "spa": SPA}

__all__ = [
    "LINKS",
    "SPA",
    "Focal",
    "Folded",
    "Link",
    "Sigmoid",
    "fold",
    "score_threshold",
    "sigmoid_threshold",
]
