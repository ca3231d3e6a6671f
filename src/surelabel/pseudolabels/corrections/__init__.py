"""Define corrections of pseudo-labels, functions ``(scores (n c), *, settings) -> scores (n c)``.

All scores are log-odds. To add a correction, add one line to ``CORRECTIONS``.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.pseudolabels.corrections.hard import hard_correction
from surelabel.pseudolabels.corrections.linear import linear_correction
from surelabel.pseudolabels.corrections.square_root import square_root_correction

__all__ = ["CORRECTIONS", "hard_correction", "linear_correction", "square_root_correction"]

CORRECTIONS: dict[str, Callable[..., Tensor]] = {
    "hard": hard_correction,
    "linear": linear_correction,
    "square_root": square_root_correction,
}
