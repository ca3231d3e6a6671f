"""Define the table of links, which convert the scores of a head to log-odds.

Each entry of ``LINKS`` is a function ``link(*, settings)`` that returns a link. A link converts
scores to unclipped log-odds with ``log_odds(scores)``, and to log-odds clipped to [-40, 40] with
``logits(scores)``. The method ``scores(logits)`` converts logits back to scores. The table
``losses.LINK_OF_LOSS`` contains the link of each loss; ``bias`` is the link of a pretrained encoder
with a bias, such as SigLIP. To add a link, add one line to ``LINKS``.
"""

from collections.abc import Callable

from surelabel.links.bias import Bias
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

LINKS: dict[str, Callable[..., Link]] = {
    "bias": Bias,
    "focal": Focal,
    "sigmoid": Sigmoid,
    "spa": SPA,
}

__all__ = [
    "LINKS",
    "SPA",
    "Bias",
    "Focal",
    "HeadWithLink",
    "Link",
    "Sigmoid",
    "fold_link",
    "score_threshold",
    "sigmoid_threshold",
]
