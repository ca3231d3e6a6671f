"""Links: ``link(*, settings)`` with ``.logits(scores)`` and ``.scores(logits)``.

A link turns what a head gives (scores) into log-odds (logits) in [-40, 40]. Which link belongs to
which loss stands in ``losses.LINK_OF``. Add one line here for a new one.
"""

from collections.abc import Callable

from surelabel.links.focal import Focal
from surelabel.links.protocol import Link
from surelabel.links.sigmoid import Sigmoid

LINKS: dict[str, Callable[..., Link]] = {"focal": Focal, "sigmoid": Sigmoid}

__all__ = ["LINKS", "Focal", "Link", "Sigmoid"]
