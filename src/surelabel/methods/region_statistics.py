"""What patches of each name look like in one's own pictures, learnt without a label."""

import math
import warnings
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.methods.clearest import above_the_rest, clearest
from surelabel.methods.discriminant import discriminant
from surelabel.methods.leaning import leaning
from surelabel.methods.neighbourhoods import neighbourhoods
from surelabel.methods.protocol import Recipe
from surelabel.methods.wording import Wording
from surelabel.records import Features
from surelabel.views import Cut, Regions, log_odds_of_softmax
from surelabel.views.relative import FEWEST

AT_ONCE = 32  # pictures whose patches are scored together
WHOLE = Regions([(0, 0, 1, 1)])


class RegionStatistics(nn.Module):
    """Learn how each name looks from the patches of unlabelled pictures that are clearest.

        first guess of a patch    softmax over the names of tau · cos(x, t_c)
        kept for each name        of the patches that it is first for, those of lowest entropy
        learnt from them          h_c(x), see ``discriminant`` and ``leaning``
        score = share · max over patches of log softmax(sharpness · h)_c
                + (1 - share) · s(picture)_c                      s: as of ``zero_shot``

    A picture costs two passes: its patches at ``side``, and the whole at the encoder's own size. A
    name that is first at no patch keeps its text; one warning says how many do.

    Learning takes time as n · p · c · d, and beside the patches it is given, of which it keeps
    c · count, memory for three numbers a patch and for the scores of 32 pictures.

    Args:
        backbone: Gives the texts and tau.
        names: What to look for, three or more, for they are held against each other.
        templates, domain, background, scale: As of ``Wording``; the domain is that of s. Words of
            the background have patches of their own, and are no answer.
        side: Size in pixels at which patches are seen, a multiple of the encoder's patch; twice
            its own when left out.
        window: A patch is taken together with those around it, as far as this share of the
            picture, in [0, 1]; see ``neighbourhoods``.
        count: Patches kept for each name at most.
        trust: Pictures that a text is worth, 0 or more.
        refits: How often patches below the mean + 1 deviation of their name's scores are dropped
            and the rest learnt from again.
        sharpness: Nats that one deviation of h makes, above 0.
        share: What the best patch counts beside the whole picture, in [0, 1].

    Raises:
        ConfigError: a setting is out of its range, there are fewer than three names, or the
            encoder does not take this ``side``.

    Source:
        PIAA (ICML 2026), as its authors' code has it, github.com/akang-wang/PIAA.

    Differs:
        Temperatures and counts are other numbers for each data set there; here one default stands
        for all, in deviations of the scores, chosen on validation scenes-80. Learnt from its 1,500
        training pictures, `tiny-vit` and `tiny-rn` have 61.3 and 68.8 mAP there, where `zero_shot`
        has 51.4 and 51.1; with texts alone (``trust`` without end) 58.6 and 66.1; with each patch
        alone (``window=0``) 57.6 and 68.8. A name's text keeps a say, so that ten pictures suffice
        to win (58.5 and 67.1). At the encoder's own side the gain is 0.0 and 5.8. The authors drop
        patches and learn again: ``refits=1`` costs 1.6 and 1.3. Naming all patches anew by what was
        learnt cost 1.2 or more, and one more class for the mean of all patches moved 0.3 at most.
    """

    learns_from = "images"
    needs: tuple[str, ...] = ("self_aware", "views")
    open_vocabulary = False
    recipe = Recipe()

    weight: Tensor
    level: Tensor
    pictures: Tensor

    def __init__(
        self,
        backbone: Backbone,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "softmax",
        background: str | Sequence[str] = "none",
        scale: float | None = None,
        side: int | None = None,
        window: float = 0.2,
        count: int = 256,
        trust: float = 20.0,
        refits: int = 0,
        sharpness: float = 3.0,
        share: float = 0.9,
    ):
        super().__init__()
        if len(names) < FEWEST:
            raise ConfigError(
                f"region_statistics holds names against each other and needs {FEWEST} or more. Got "
                f"{len(names)}; add names, or take tiles or zero_shot."
            )
        if not (0 <= window <= 1 and 0 <= share <= 1):
            raise ConfigError(f"window and share are shares in [0, 1]. Got {window} and {share}.")
        if count < 1 or refits < 0 or not 0 <= trust < math.inf or not 0 < sharpness < math.inf:
            raise ConfigError(
                "count must be 1 or more, trust and refits 0 or more, and sharpness above 0. Got "
                f"count={count}, trust={trust}, refits={refits}, sharpness={sharpness}."
            )
        self.own_side = backbone.least_side
        self.side = side or 2 * self.own_side
        backbone.at(self.side)  # refuses what is no multiple of a patch
        self.window, self.count, self.trust, self.refits = window, count, trust, refits
        self.sharpness, self.share, self.names = sharpness, share, list(names)
        self.wording = Wording(
            backbone, names, templates=templates, domain=domain, background=background, scale=scale
        )
        c = len(self._texts())
        self.register_buffer("weight", torch.full((c, backbone.width), torch.nan))
        self.register_buffer("level", torch.full((c,), torch.nan))
        self.register_buffer("pictures", torch.zeros(c))

    def cut(self, features: Features) -> Cut | None:
        """The whole picture at the encoder's own size, once, where patches are seen at another."""
        return WHOLE if features.views is None and self.side != self.own_side else None

    @torch.no_grad()
    def learn(self, features: Features) -> None:
        """Choose patches, and learn from them what tells the names apart.

        Raises:
            InputError: there are no patches.
        """
        guessed = [self._guess(part) for part in self._parts(features)]
        name, sure, entropy = (torch.cat(each) for each in zip(*guessed, strict=True))
        rows = clearest(name, entropy, count=self.count)
        kept = self._gathered(features, rows)
        for again in range(self.refits + 1):
            weight, level = discriminant(kept, name[rows], sure[rows], count=len(self.level))
            if again < self.refits:
                own = (kept * weight[name[rows]]).sum(dim=1) + level[name[rows]]
                best = above_the_rest(own, name[rows], count=len(self.level))
                rows, kept = rows[best], kept[best]
        picture = rows // (len(name) // len(features.pooled))
        self.pictures = _distinct(name[rows], picture, count=len(self.level))
        self.weight, self.level = leaning(
            weight, level, self._texts(), kept, self.pictures, trust=self.trust
        )
        self._tell(len(features.pooled))

    def maps(self, features: Features) -> Tensor:
        """Log-odds of each name at each place, ``(n, c, down, across)``: where it is.

        Raises:
            NotFitted: nothing was learnt yet.
            InputError: there are no patches.
        """
        maps = torch.cat([self._log_odds(part) for part in self._parts(features)])
        assert features.grid is not None
        found: Tensor = maps.transpose(1, 2).unflatten(2, features.grid)
        return found

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``pooled``, ``patches`` and ``views``."""
        whole, best = self.of_views(features).unbind(dim=1)
        scores: Tensor = self.share * F.logsigmoid(best) + (1 - self.share) * whole
        return scores

    def of_views(self, features: Features) -> Tensor:
        """Scores ``(n, 2, c)`` of the whole picture, then log-odds of its best patches.

        Raises:
            NotFitted: nothing was learnt yet.
            InputError: there are no patches.
        """
        best = torch.cat([self._log_odds(part).amax(dim=1) for part in self._parts(features)])
        seen = features.pooled if features.views is None else features.views[:, 0]
        return torch.stack([self.wording(seen).to(best.dtype), best], dim=1)

    def _texts(self) -> Tensor:
        """Names, then the words of the background."""
        return torch.cat([self.wording.texts, self.wording.background[self.wording.counts]])

    def _parts(self, features: Features) -> Iterator[Tensor]:
        """Patches with their neighbours, a few pictures at a time."""
        if features.patches is None or features.grid is None:
            raise InputError(
                "region_statistics needs patches and their grid. Got pooled vectors; encode "
                "pictures with part=self_aware."
            )
        for some in features.patches.split(AT_ONCE):
            yield neighbourhoods(some.float(), features.grid, window=self.window)

    def _guess(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of each patch, row by row: its first name, how probable that is, and the entropy."""
        log_p = (self.wording.scale * patches.flatten(0, 1) @ self._texts().T).log_softmax(dim=1)
        best, name = log_p.max(dim=1)
        return name, best.exp(), -(log_p.exp() * log_p).sum(dim=1)

    def _gathered(self, features: Features, rows: Tensor) -> Tensor:
        """The patches of these rows, ``(m, d)``."""
        found, start = [], 0
        for part in self._parts(features):
            flat = part.flatten(0, 1)
            here = rows[(rows >= start) & (rows < start + len(flat))]
            found.append(flat[here - start])
            start += len(flat)
        return torch.cat(found)

    def _log_odds(self, patches: Tensor) -> Tensor:
        """Log-odds of the names at each patch, ``(n, p, c)``."""
        if not bool(self.weight.isfinite().all()):
            raise NotFitted(
                "region_statistics has to see unlabelled pictures before it can score any: call "
                "fit(pictures), or `surelabel fit` on a folder of pictures."
            )
        scores = self.sharpness * (patches @ self.weight.T + self.level)
        return log_odds_of_softmax(scores, scale=1.0, least=0.0)[..., : len(self.names)]

    def _tell(self, pictures: int) -> None:
        """Warn of the names that were learnt from no patch."""
        without = [n for n, m in zip(self.names, self.pictures.tolist(), strict=False) if not m]
        if without:
            some = ", ".join(without[:5]) + (", …" if len(without) > 5 else "")
            warnings.warn(
                f"{len(without)} of {len(self.names)} names come first at no patch of the "
                f"{pictures} pictures and keep their texts alone: {some}. More pictures help.",
                stacklevel=4,  # past no_grad, at whoever lets it learn
            )


def _distinct(names: Tensor, pictures: Tensor, *, count: int) -> Tensor:
    """In how many pictures each name has patches, ``(count,)``."""
    pairs = torch.unique(torch.stack([names, pictures]), dim=1)
    return torch.bincount(pairs[0], minlength=count).float()
