"""A picture and its parts, each held against the names, then made one."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from surelabel.methods.wording import Wording
from surelabel.records import Features
from surelabel.tables import choose, settings
from surelabel.views import FUSIONS


class Fused(nn.Module):
    """What the methods that look at parts of a picture share.

    Args:
        wording: What vectors are compared with.
        fusion: Entry of ``FUSIONS``.
        amount: The one setting that the fusion has, such as its share or its margin; its own
            default when left out.
        whole_counts: The whole picture is one of its views, too. A picture that is looked at less
            often than others is filled up with itself, which then changes nothing.

    Raises:
        UnknownName: there is no such fusion.
        ConfigError, InputError: ``amount`` is out of range, or the fusion needs more names.
    """

    def __init__(
        self, wording: Wording, *, fusion: str, amount: float | None, whole_counts: bool = False
    ):
        super().__init__()
        self.wording, self.whole_counts = wording, whole_counts
        self.fuse = fusion_of(fusion, amount)
        row = torch.zeros(1, len(wording.texts))
        self.fuse(row, row[:, None])  # tried once, so that what cannot work is told at once

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)``; a picture without views is its own and only view."""
        scores = self.of_views(features)
        seen = scores if self.whole_counts or features.views is None else scores[:, 1:]
        return self.fuse(scores[:, 0], seen)

    def of_views(self, features: Features) -> Tensor:
        """Scores ``(n, 1 + t, c)`` of the whole picture, then of each view."""
        whole = features.pooled[:, None]
        vectors = whole if features.views is None else torch.cat([whole, features.views], dim=1)
        scores: Tensor = self.wording(vectors)
        return scores


def fusion_of(name: str, amount: float | None = None) -> Callable[[Tensor, Tensor], Tensor]:
    """The rule of that name with its one setting.

    Args:
        name: Entry of ``FUSIONS``.
        amount: Its setting; its default when left out.

    Raises:
        UnknownName: there is no such fusion.
        ConfigError: ``amount`` is no number.

    Example:
        >>> picture, view = torch.tensor([[1.0, 0.0]]), torch.tensor([[[0.0, 2.0]]])
        >>> fusion_of("max_with_margin", 0.5)(picture, view)
        tensor([[1.0000, 1.5000]])
    """
    rule = choose(FUSIONS, name)
    if amount is None:
        return rule
    return choose(FUSIONS, name, **{setting: amount for setting in settings(FUSIONS[name])})
