"""Names as an encoder reads them, and how vectors are compared with them."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.backbones import Backbone, prompt_templates, reference_names
from surelabel.errors import ConfigError
from surelabel.methods.score_domains import SCORE_DOMAINS
from surelabel.views.relative import FEWEST

BACKGROUNDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "usual": (
        *("ground", "grass", "soil", "sand", "rock", "road", "floor", "carpet", "wall", "ceiling"),
        *("window", "curtain", "building", "fence", "tree", "forest", "leaves", "mountain", "hill"),
        *("river", "lake", "sea", "sky", "cloud", "shadow"),
    ),
}


class Wording(nn.Module):
    """The settings that all methods without labels share, and the comparison they make.

        score = domain(tau · cos(x, names), tau · cos(x, background), tau · cos(x, reference))

    Args:
        backbone: Gives the texts and tau.
        names: What to look for; ``sofa|couch`` are two spellings of one label.
        templates: Sentences around a name: ``one``, ``ensemble``, or your own with ``{}``.
        domain: What a name is held against, an entry of ``SCORE_DOMAINS``: ``reference`` for
            scores of their own, or ``softmax``, ``centred``, ``standardised`` within the list.
        background: Words that take their share and are no answer: ``none``, ``usual``, or a list.
        scale: Instead of the encoder's own tau; the inverse of a temperature, > 0.

    Raises:
        ConfigError: a setting is unknown or out of range, or a domain within the list is asked for
            with fewer than three names.

    Example:
        >>> from surelabel.backbones import load_backbone
        >>> wording = Wording(load_backbone("tiny-vit"), ["lion", "sofa|couch"])
        >>> wording(torch.zeros(5, 9, 128)).shape
        torch.Size([5, 9, 2])
    """

    texts: Tensor
    background: Tensor
    reference: Tensor

    def __init__(
        self,
        backbone: Backbone,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "reference",
        background: str | Sequence[str] = "none",
        scale: float | None = None,
    ):
        super().__init__()
        if domain not in SCORE_DOMAINS:
            raise ConfigError(f"domain is one of {', '.join(SCORE_DOMAINS)}. Got {domain!r}.")
        if scale is not None and not 0 < scale < math.inf:
            raise ConfigError(f"scale must be a number above 0. Got {scale}.")
        words = _words(background)
        if domain != "reference" and len(names) < FEWEST:
            raise ConfigError(
                f"domain={domain} holds names against each other and needs {FEWEST} or more. Got "
                f"{len(names)}; add names, or take domain=reference."
            )
        sentences = prompt_templates(templates)
        self.domain, self.scale = domain, scale or backbone.scale
        self.register_buffer("texts", spelled(backbone, names, sentences), persistent=False)
        everyday = backbone.texts(reference_names(), sentences)
        others = backbone.texts(words, sentences) if words else everyday[:0]
        self.register_buffer("background", others)
        self.register_buffer("reference", everyday)

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores ``(…, c)`` of unit vectors ``(…, d)``."""
        with_each = (self.texts, self.background, self.reference)
        return SCORE_DOMAINS[self.domain](*(self.scale * vectors @ texts.T for texts in with_each))


def spelled(backbone: Backbone, names: Sequence[str], sentences: Sequence[str]) -> Tensor:
    """Unit vectors ``(c, d)`` of names; ``sofa|couch`` is the mean of its spellings."""
    spellings = [name.split("|") for name in names]
    flat = backbone.texts([one.strip() for several in spellings for one in several], sentences)
    parts = flat.split([len(several) for several in spellings])
    return F.normalize(torch.stack([part.mean(0) for part in parts]), dim=-1)


def _words(background: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(background, str):
        return tuple(background)
    if background not in BACKGROUNDS:
        raise ConfigError(
            f"background is one of {', '.join(BACKGROUNDS)}, or a list of words. "
            f"Got {background!r}."
        )
    return BACKGROUNDS[background]
