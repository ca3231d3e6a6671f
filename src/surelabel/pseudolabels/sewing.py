"""How pictures are sewn together to learn from, and how their labels learn."""

import math
from dataclasses import dataclass

from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.links.focal import Variant
from surelabel.pseudolabels.checked import check_count
from surelabel.pseudolabels.selection import patch_set, top_pictures

FULL = 5000  # pictures from which a name gets all the pictures that are asked for


@dataclass(frozen=True, kw_only=True)
class Sewing:
    """The settings of a student that learns from sewn pictures.

    Args:
        overlays: Greatest number of pictures sewn onto one (L); 0 sews none.
        chance: p, in [0, 1]: that this overlay is the last ("code"), that one more comes ("paper").
        side: q, part of a side that all overlays together may take, in (0, 1].
        variant: Whose rule for number and size, "paper" or "code".
        patches: How many pictures each name gives to be sewn (k), >= 1, of 5,000 or more; of fewer
            the same share.
        strong: What the strongly varied view counts beside the other one, >= 0; 0 leaves it out.
        rate: Step size of the labels; 0 lets them stay as they are.
        decay: Pull of the labels towards log-odds 0; 0 is none.

    Raises:
        ConfigError: a setting is out of its range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3 and 3.5, with the settings of the authors' code.

    Differs:
        L is 1 as in the code, so that p has no influence; p = q = 0.6 in the paper, which never
        says its L. The paper selects 200 pictures a name, which is 3.5 % of VOC2012; of a small
        set they would be all.

    Example:
        >>> import torch
        >>> Sewing().chosen(torch.tensor([[3.0, 1.0], [2.0, 0.0], [1.0, 3.0]]))
        tensor([0, 2])
    """

    overlays: int = 1
    chance: float = 0.6
    side: float = 0.65
    variant: Variant = "code"
    patches: int = 200
    strong: float = 0.7
    rate: float = 0.01
    decay: float = 0.0

    def __post_init__(self) -> None:
        check_count("overlays", self.overlays)
        check_count("patches", self.patches, least=1)
        for name, value, right, wanted in (
            ("chance", self.chance, 0 <= self.chance <= 1, "in [0, 1]"),
            ("side", self.side, 0 < self.side <= 1, "in (0, 1], a part of a side"),
            ("strong", self.strong, 0 <= self.strong < math.inf, "0 or more"),
            ("rate", self.rate, 0 <= self.rate < math.inf, "0 or more, such as 0.01"),
            ("decay", self.decay, 0 <= self.rate * self.decay <= 1, "in [0, 1 / rate], 0 for none"),
        ):
            if not right:
                raise ConfigError(f"{name} must be {wanted}. Got {value!r}.")
        if self.variant not in ("paper", "code"):
            raise ConfigError(f'variant must be "paper" or "code". Got {self.variant!r}.')

    def chosen(self, scores: Tensor) -> Tensor:
        """Rows of the pictures that are sewn onto others, by scores ``(n, c)``."""
        share = min(1.0, len(scores) / FULL)
        return patch_set(top_pictures(scores, count=max(1, round(share * self.patches))))
