"""Corrections of pseudo-labels: ``(scores (n c), *, settings) -> scores (n c)``, in log-odds.

Add one line to ``CORRECTIONS`` for a new one.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.pseudolabels.corrections.hard import hard
from surelabel.pseudolabels.corrections.linear import linear
from surelabel.pseudolabels.corrections.square_root import square_root

__all__ = ["CORRECTIONS", "hard", "linear", "square_root"]

CORRECTIONS: dict[str, Callable[..., Tensor]] = {
    "hard": hard,
    "linear": linear,
    "square_root": square_root,
}
