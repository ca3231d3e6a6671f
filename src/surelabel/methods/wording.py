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

    The defaults are those that ranked best, or within 0.2, in one pass over the validation
    pictures of scenes-80, in mAP of tiny-vit and tiny-rn: ``reference`` 51.4 and 51.1, ``softmax``
    51.4 and 51.1 (51.3 at half the scale), ``standardised`` 49.9 and 50.0, ``centred`` 49.8 and
    49.8; ``ensemble`` costs 2.9 and 1.6 within ``softmax``; background words add nothing. On
    photographs (VOC2012 train, RN50x64) ``softmax`` has 85.3 at the encoder's scale, 87.0 at a
    quarter of it.

    Args:
        backbone: Gives the texts and tau.
        names: What to look for; ``sofa|couch`` are two spellings of one label.
        templates: Sentences around a name: ``one``, ``ensemble``, or your own with ``{}``.
        domain: What a name is held against, an entry of ``SCORE_DOMAINS``: ``reference`` for
            scores of their own, or ``softmax``, ``centred``, ``standardised`` within the list.
        background: Words that take their share and are no answer: ``none``, ``usual``, or a list.
            A word that is a name as well is left out.
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
    counts: Tensor

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
        if scale is not None and not (isinstance(scale, int | float) and 0 < scale < math.inf):
            raise ConfigError(f"scale must be a number above 0. Got {scale!r}.")
        words = background_words(background)
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
        self.register_buffer("counts", _are_no_names(words, names), persistent=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores ``(…, c)`` of unit vectors ``(…, d)``."""
        with_each = (self.texts, self.background[self.counts], self.reference)
        return SCORE_DOMAINS[self.domain](*(self.scale * vectors @ texts.T for texts in with_each))


def spelled(backbone: Backbone, names: Sequence[str], sentences: Sequence[str]) -> Tensor:
    """Unit vectors ``(c, d)`` of names; ``sofa|couch`` is the mean of its spellings."""
    spellings = [name.split("|") for name in names]
    flat = backbone.texts([one.strip() for several in spellings for one in several], sentences)
    parts = flat.split([len(several) for several in spellings])
    return F.normalize(torch.stack([part.mean(0) for part in parts]), dim=-1)


def background_words(background: str | Sequence[str]) -> tuple[str, ...]:
    """The words of an entry of ``BACKGROUNDS``, or one's own, each once.

    Raises:
        ConfigError: there is no such entry, or a word is empty.
    """
    if isinstance(background, str):
        if background not in BACKGROUNDS:
            raise ConfigError(
                f"background is one of {', '.join(BACKGROUNDS)}, or a list of words. "
                f"Got {background!r}."
            )
        return BACKGROUNDS[background]
    if not all(isinstance(word, str) and word.strip() for word in background):
        raise ConfigError(f"background words must not be empty. Got {list(background)}.")
    return tuple(dict.fromkeys(word.strip() for word in background))


def others(background: str | Sequence[str], names: Sequence[str]) -> list[str]:
    """The background words that are no spelling of a name.

    Example:
        >>> others(["sky", "Ground"], ["sea|sky"])
        ['Ground']
    """
    words = background_words(background)
    return [w for w, counts in zip(words, _are_no_names(words, names), strict=True) if counts]


def _are_no_names(words: Sequence[str], names: Sequence[str]) -> Tensor:
    """Which words are no name: what is looked for is no background."""
    taken = {spelling.strip().casefold() for name in names for spelling in name.split("|")}
    return torch.tensor([word.casefold() not in taken for word in words], dtype=torch.bool)
