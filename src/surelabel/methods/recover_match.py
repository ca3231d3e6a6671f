"""Train on some names, recognise others: local meaning recovered, and matched to labels."""

import warnings
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.backbones import Backbone, prompt_templates
from surelabel.calibration import Platt
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.local_stream import LocalStream
from surelabel.methods.prompted_names import PromptedNames
from surelabel.methods.protocol import Recipe
from surelabel.methods.region_matching import RegionMatching
from surelabel.records import Features
from surelabel.transport import Plan

AT_ONCE = 32  # pictures, when nothing is learnt
TEXT_RATE = 0.1  # step size of prompts, as a share of the rest's
LEARNING = 1000  # steps of a matching in training
FLATTEST = 1.0  # slope at the start; with less nothing would be learnt


class Seen(NamedTuple):
    """Cosines of a batch of pictures with the names.

    Attributes:
        local: Of regions, ``(n, p, c)``.
        whole: Of whole pictures, ``(n, c)``.
        frozen: Of regions as the frozen encoder has them, ``(n, p, c)``; None where not asked for.
    """

    local: Tensor
    whole: Tensor
    frozen: Tensor | None = None


class RecoverMatch(nn.Module):
    """Compare regions and the whole picture with the names, regions where they speak for a name.

        local  = mean cosine of the regions matched to a label
        whole  = cosine of the picture
        score  = mean of a_i · (local, whole)_i + b_i

    A ladder beside the frozen blocks gives regions their own meaning back: what the attention of
    values to values adds, and a small network that asks the names. Prompts in the text tower learn
    how names are read. Regions and labels are matched by optimal transport; in training the plan
    is drawn to that of the frozen encoder for the labels that are present.

    Args:
        backbone: A ViT with its text tower.
        names: What to look for; others may be asked for later. A name's score depends a little on
            the others, for regions are shared out among all.
        templates: As of ``zero_shot``.
        depth: Blocks with a network beside them, the last of the tower.
        first: Block from which self-aware attention is added up, 0-based; that of the last
            ``depth`` always is.
        self_aware: Whether regions come of self-aware attention, or of the tower's own.
        selection: Whether there are networks that ask the names.
        prompts: Learnt tokens in each of the last text layers.
        text_layers: How many of these there are, all where the tower has fewer; when left out, a
            quarter of the tower's: 3 of 12.
        visual_prompts: Learnt tokens in each of the last ``depth`` blocks.
        transport: How regions are matched to labels, an entry of ``TRANSPORTS``.
        regularization: How evenly (lambda1), > 0.
        knowledge: Pull of the frozen encoder's plan in training (lambda2), >= 0.
        presence: How sharply regions are weighed by how much they look like any label, >= 0; 0
            weighs all alike, and the paper's temperature of 0.1 is 10.
        variant: Where the released ``"code"`` and the ``"paper"`` differ: the code adds up
            self-aware attention from block ``first`` on, the paper in the last ``depth`` blocks
            only; the masks of the networks, see ``LocalAdapter``.

    Raises:
        ConfigError, UnknownName: a setting is unknown or out of range, or the encoder is no ViT.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 2 to 14.

    Differs:
        The released code counts the labels into the local temperature, so that it changes with
        their list; here local scores are means. Temperatures are learnt as logarithms, and begin
        where Platt's line through the cosines has them. Both heads have a level of their own, so
        that a proper loss can train them. The loss is their mean, as in the paper; the code adds
        them up. A plan stops on its error, picture by picture. The paper ranks by ``ranking``;
        ``forward`` ranks pictures better (below: 53.7 against 50.5), ``ranking`` the names of a
        picture (45.0 against 42.7 F1 at 3).

        Chosen on 500 validation pictures of scenes-80 with `tiny-vit`, after fitting on the 853
        training pictures that show none of 17 unseen names: mAP of these 17, and of all 65.
        Zero-shot has 50.0 and 52.5, with the strongest frozen patch beside the whole 51.6 and 53.9;
        this recipe 53.7 and 58.6 (the paper's loss, ``multi_matching``: 53.5 and 58.5). After half
        the passes, in the mean of three seeds, both losses have 53.1 and 56.9; only this one gives
        log-odds. With four prompts a text layer 52.5 and 56.4: the paper gains by them, a text
        tower of two layers does not. Regions averaged alike instead of matched: 48.5 and 52.4;
        without the frozen encoder's advice: 53.0 and 56.6. Networks that begin at nothing: 52.3 and
        55.8; temperatures that begin at the encoder's scale: 49.9 and 53.5.
    """

    learns_from = "labels"
    needs: tuple[str, ...] = ("ladder",)
    side: int | None = None
    open_vocabulary = True
    recipe = Recipe(
        epochs=8,
        batch=32,
        at_once=32,
        learning_rate=0.001,
        weight_decay=0.01,
        warm_up=0.1,
    )

    def __init__(
        self,
        backbone: Backbone,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        depth: int = 3,
        first: int = 0,
        self_aware: bool = True,
        selection: bool = True,
        prompts: int = 0,
        text_layers: int | None = None,
        visual_prompts: int = 0,
        transport: str = "sinkhorn",
        regularization: float = 0.1,
        knowledge: float = 0.05,
        presence: float = 10.0,
        variant: Literal["paper", "code"] = "code",
    ):
        super().__init__()
        self.rates = {"names": TEXT_RATE}
        for name, count in (("prompts", prompts), ("visual_prompts", visual_prompts)):
            if count < 0:
                raise ConfigError(f"{name} must be 0 or more. Got {count}.")
        if text_layers is not None and text_layers < 1:
            raise ConfigError(f"text_layers must be 1 or more. Got {text_layers}.")
        if variant not in ("paper", "code"):
            raise ConfigError(f'variant must be "paper" or "code". Got {variant!r}.')
        backbone.upper(depth).check_first(first)
        self.ladder = (first, depth)
        self.matching = RegionMatching(
            transport=transport,
            regularization=regularization,
            knowledge=knowledge,
            presence=presence,
            sharpness=backbone.scale,
        )
        self.names = PromptedNames(
            backbone, names, prompt_templates(templates), prompts=prompts, layers=text_layers
        )
        self.stream = LocalStream(
            backbone,
            depth=depth,
            self_aware=self_aware,
            selection=selection,
            prompts=visual_prompts,
            variant=variant,
        )
        self.log_slopes = nn.Parameter(torch.full((2,), backbone.scale).log())  # local, global
        self.levels = nn.Parameter(torch.zeros(2))
        self._unmatched = 0
        self.to(self.names.frozen.device)

    @torch.no_grad()
    def start(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Let each a and b begin where ``link`` makes log-odds of these cosines."""
        pairs = self._each(features, lambda seen: self._pair(seen).transpose(0, 1))
        for head, cosines in enumerate(pairs.unbind(1)):
            found = Platt().fit(cosines.numpy(), targets.numpy(), known.numpy())
            wanted = link.scores(found.slope_ * cosines + found.shift_)
            centred = cosines - cosines.mean()
            slope = (centred * wanted).sum() / centred.square().sum().clamp(min=1e-12)
            slope = slope.clamp(min=FLATTEST)
            self.log_slopes[head] = slope.log()
            self.levels[head] = wanted.mean() - slope * cosines.mean()

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)``, the mean of the local and the global ones.

        Raises:
            NotConverged: regions and labels of a picture could not be matched.
        """
        return self._each(features, lambda seen: self._scores(self._pair(seen)).mean(dim=0))

    def learning(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Local and global scores ``(2, n, c)`` in training, with the frozen encoder's advice.

        A plan that did not converge is used as far as it came; when training ends, a warning says
        how many did not.

        Raises:
            ConfigError: a step was so large that nothing is a number any more.
        """
        seen = self._seen(self._here(features), advised=self.matching.knowledge > 0)
        if not seen.local.isfinite().all():
            raise ConfigError(
                "Fitting left all bounds: similarities of regions and names are no numbers any "
                "more. Take a smaller learning_rate."
            )
        present = ((targets > 0.5) & known).to(seen.local.device)
        plan = self.matching.plan(seen.local, seen.frozen, present, max_steps=LEARNING)
        self._unmatched += int((~plan.converged).sum())
        return self._scores(self._pair(seen, plan.as_reached())).to(features.pooled.device)

    @torch.no_grad()
    def ranking(self, features: Features) -> Tensor:
        """Shares of the names ``(n, c)``, as the paper ranks them; each picture's sum to 1.

        (softmax over names of a_1 · local + softmax over names of a_2 · whole) / 2
        """
        return self._each(
            features, lambda seen: self._scores(self._pair(seen)).softmax(dim=-1).mean(dim=0)
        )

    @torch.no_grad()
    def maps(self, features: Features) -> Tensor:
        """What each region adds to the local cosine of each name, ``(n, c, down, across)``.

        It is the region's share of the label's plan, sum 1, times its cosine. A cosine below 0 has
        an even share: by its own, the region that counts least would be the strongest. Fitted on 48
        names of scenes-80, the strongest region of 17 others lies in a box of theirs for 75.6 % of
        500 validation pictures; by the plan alone for 72.1 %, by the cosine alone for 77.9 %.
        """
        added = self._each(features, self._added)
        maps: Tensor = added.transpose(1, 2).unflatten(2, features.grid or ())
        return maps

    @torch.no_grad()
    def similarities(self, features: Features) -> Tensor:
        """Cosines of regions with each name, ``(n, c, down, across)``."""
        cosines = self._each(features, lambda seen: seen.local).transpose(1, 2)
        maps: Tensor = cosines.unflatten(2, features.grid or ())
        return maps

    @torch.no_grad()
    def presence(self, features: Features) -> Tensor:
        """How much each region counts in the matching, ``(n, down, across)``, sum 1."""
        weights = self._each(features, lambda seen: self.matching.weights(seen.local))
        maps: Tensor = weights.unflatten(1, features.grid or ())
        return maps

    def train(self, mode: bool = True) -> Self:
        """Learn, or be used; says what did not converge while it learnt."""
        if self._unmatched and not mode:
            warnings.warn(
                f"{self._unmatched} matchings of regions to labels did not converge in training "
                "and were used as far as they came. Raise method.regularization.",
                stacklevel=2,
            )
            self._unmatched = 0
        return super().train(mode)

    def _each(self, features: Features, answer: Callable[[Seen], Tensor]) -> Tensor:
        """The answers for all pictures; in use a few pictures are looked at together."""
        rows = torch.arange(len(features.pooled))
        parts = [rows] if self.training else rows.split(AT_ONCE)
        found = [answer(self._seen(self._here(features, part))) for part in parts]
        return torch.cat(found).to(features.pooled.device)

    def _here(self, features: Features, rows: Tensor | slice = slice(None)) -> Features:
        """What is needed of these pictures, where the encoder is."""
        here = self.levels.device
        return Features(
            pooled=features.pooled[rows].to(here),
            grid=features.grid,
            layers={k: tokens[rows].to(here) for k, tokens in (features.layers or {}).items()},
            beside=None if features.beside is None else features.beside[rows].to(here),
        )

    def _seen(self, features: Features, *, advised: bool = False) -> Seen:
        texts = self.names()
        steps = self.stream.steps(features)
        return Seen(
            _cosines(self.stream.regions(features, steps, texts), texts),
            _cosines(self.stream.whole(features, steps), texts),
            _cosines(self.stream.frozen(features, steps), self.names.frozen) if advised else None,
        )

    def _added(self, seen: Seen) -> Tensor:
        """What each region adds to the local cosine of each name, ``(n, p, c)``."""
        even = torch.full_like(seen.local, 1 / seen.local.shape[1])
        return seen.local * torch.where(seen.local > 0, self.matching.shares(seen.local), even)

    def _pair(self, seen: Seen, plan: Plan | None = None) -> Tensor:
        """Cosines with each name of what speaks for it, and of the picture, ``(2, n, c)``."""
        return torch.stack([self.matching.pooled(seen.local, plan), seen.whole])

    def _scores(self, pair: Tensor) -> Tensor:
        return self.log_slopes.exp()[:, None, None] * pair + self.levels[:, None, None]


def _cosines(vectors: Tensor, texts: Tensor) -> Tensor:
    """Of ``(…, d)`` and ``(c, d)``, in float32 at least: half precision would blur the matching."""
    wide = torch.promote_types(vectors.dtype, torch.float32)
    with torch.autocast(vectors.device.type, enabled=False):
        return F.normalize(vectors.to(wide), dim=-1) @ F.normalize(texts.to(wide), dim=-1).T
