"""Patch by patch, then once more where a patch has something to say."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.errors import ConfigError, InputError
from surelabel.methods.maps import refined
from surelabel.methods.places import telling_places
from surelabel.methods.protocol import Recipe
from surelabel.methods.wording import Wording
from surelabel.records import Features
from surelabel.views import Cut, Regions

AT_ONCE = 64  # pictures whose maps are in memory together
LEAST = 0.01  # of the picture's sides; places are rounded to a hundredth of it
FEWEST_PATCHES = 4  # down and across; fewer say too little of where


class DenseRegions(nn.Module):
    """Compare each patch with the names, and look again at the places that say the most.

        score = share · max over patches of R + (1 - share) · max(s(picture), s(window 1), …)

    with s as of ``zero_shot`` and R the scores of patches after ``refined``. Windows lie around the
    strongest patches, each for another name and elsewhere; see ``telling_places``. A picture costs
    one pass at ``side`` and one at the encoder's own size for each window.

    Args:
        backbone: Gives the texts and tau.
        names: What to look for; ``sofa|couch`` are two spellings of one label.
        templates, domain, background, scale: As of ``Wording``.
        side: Size in pixels at which the whole picture is seen, a multiple of the encoder's patch;
            when left out, its own, or as much more as gives 4 by 4 patches.
        windows: How many places are looked at again at most; 0 leaves it at patches.
        part: Width and height of a window as shares of the picture's, in [0.01, 1].
        share: What patches count beside the picture and its windows, in [0, 1].

    Raises:
        ConfigError: a setting is out of its range, or the encoder does not take this ``side``.

    Source:
        TagCLIP (Lin et al., AAAI 2024), arXiv:2312.12828: self-aware patches in the softmax with
        background words, refined by attention, and a second look at candidates.

    Differs:
        Chosen on 200 validation scenes unless said otherwise. The paper crops, for each name above
        the middle of its range, the box of what is above half of its map. Five such boxes, of maps
        spread as in the paper, had 53.8 mAP (`tiny-vit`, 300 scenes), five windows 77.2, both with
        the greatest score; boxes of maps as they are spread here were not tried. No box can be
        empty and end the search, as in the authors' code. A window speaks for all names, without a
        mask on its class token, and the whole picture counts. The paper blends half and half: 76.5
        instead of 78.9, but for `tiny-rn` 67.6 instead of 67.1. It looks at photographs at their
        own resolution; `tiny-rn` has 59.2 at 192 px and 65.9 at 128, by the greatest score. Windows
        are found before patches are refined: 0.8 more (`tiny-vit`).
    """

    learns_from = "nothing"
    needs: tuple[str, ...] = ("self_aware", "attention", "views")
    open_vocabulary = True
    recipe = Recipe()

    def __init__(
        self,
        backbone: Backbone,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "softmax",
        background: str | Sequence[str] = "usual",
        scale: float | None = None,
        side: int | None = None,
        windows: int = 5,
        part: float = 0.4,
        share: float = 0.3,
    ):
        super().__init__()
        if windows < 0 or not LEAST <= part <= 1 or not 0 <= share <= 1:
            raise ConfigError(
                f"windows must be 0 or more, part in [{LEAST}, 1] and share in [0, 1]. Got "
                f"windows={windows}, part={part}, share={share}."
            )
        self.wording = Wording(
            backbone, names, templates=templates, domain=domain, background=background, scale=scale
        )
        self.side = _side(backbone) if side is None else backbone.at(side).least_side
        self.windows, self.part, self.share = windows, part, share

    def maps(self, features: Features) -> Tensor:
        """Log-odds of each name at each place, ``(n, c, down, across)``: where it is.

        Raises:
            InputError: there are no patches, or no attention between them.
        """
        if features.patches is None or features.grid is None or features.attention is None:
            raise InputError(
                "dense_regions needs patches, their grid and their attention. Got pooled vectors; "
                "encode pictures with part=attentive."
            )
        scores = self.wording(features.patches)
        return _placed(refined(scores, features.attention, features.grid), features)

    @torch.no_grad()
    def cut(self, features: Features) -> list[Cut | None] | None:
        """Windows around the places that say the most, once."""
        if features.views is not None or not self.windows:
            return None
        return [
            Regions(places)
            for some in _batches(features)
            for places in telling_places(
                _placed(self.wording(some.patches), some), count=self.windows, part=self.part
            )
        ]

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``pooled``, ``patches``, ``attention`` and ``views``."""
        return self.of_views(features).amax(dim=1)

    def of_views(self, features: Features) -> Tensor:
        """Scores ``(n, 1 + t, c)`` of the picture, then of each window, with the patches' share."""
        strongest = [self.maps(some).amax(dim=(2, 3)) for some in _batches(features)]
        whole = features.pooled[:, None]
        vectors = whole if features.views is None else torch.cat([whole, features.views], dim=1)
        patches = torch.cat(strongest)[:, None]
        scores: Tensor = self.share * patches + (1 - self.share) * self.wording(vectors)
        return scores


def _side(backbone: Backbone) -> int:
    """The encoder's own size, or the next at which a picture has enough patches."""
    own = backbone.least_side
    grid = backbone.at(own).attentive(torch.zeros(1, 3, own, own)).grid
    assert grid is not None
    return own // min(grid) * max(min(grid), FEWEST_PATCHES)


def _placed(scores: Tensor, features: Features) -> Tensor:
    """Scores of patches ``(n, p, c)`` on their grid, ``(n, c, down, across)``."""
    assert features.grid is not None
    placed: Tensor = scores.transpose(1, 2).unflatten(2, features.grid)
    return placed


def _batches(features: Features) -> Iterator[Features]:
    """The same pictures, a few at a time: what maps are made from."""
    for start in range(0, len(features.pooled), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        patches, attention = features.patches, features.attention
        yield Features(
            features.pooled[rows],
            patches=None if patches is None else patches[rows],
            grid=features.grid,
            attention=None if attention is None else attention[rows],
        )
