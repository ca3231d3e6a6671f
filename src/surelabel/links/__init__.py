"""Links: ``link(*, settings)`` with ``.log_odds(scores)``, ``.logits(scores)`` and their inverse.

A link converts the scores of a head to log-odds (unclipped) and to logits (clipped to [-40, 40]).
The link of each loss is listed in ``losses.LINK_OF_LOSS``. Add one line here for a
new one.
"""

from collections.abc import Callable

from surelabel.links.focal import Focal
from surelabel.links.folding.folded_link import (
    HeadWithLink,
    fold_link,
    score_threshold,
    sigmoid_threshold,
)
from surelabel.links.interface import Link
from surelabel.links.sigmoid import Sigmoid
from surelabel.links.spa import SPA

LINKS: dict[str, Callable[..., Link]] = {"focal": Focal, "sigmoid": Sigmoid, "spa": SPA}

__all__ = [
    "LINKS",
    "SPA",
    "Focal",
    "HeadWithLink",
    "Link",
    "Sigmoid",
    "fold_link",
    "score_threshold",
    "sigmoid_threshold",
]
