"""Zero-shot: names in, scores out, nothing learnt."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.backbones import Backbone, prompt_templates, reference_names
from surelabel.methods.protocol import Recipe
from surelabel.records import Features


class ZeroShot(nn.Module):
    """Compare a picture with each name, and with what it resembles anyway.

        score = tau · cos(x, t_c) - log mean_r exp(tau · cos(x, t_r))

    The second term runs over a fixed list of everyday things that comes with the package, never
    over the user's own names. A name's score is therefore its own: it does not change when
    other names are added, and one name alone has a score that means something.

    Args:
        backbone: Gives the texts and tau.
        names: What to look for; ``sofa|couch`` are two spellings of one label.
        templates: Sentences around a name: ``one``, ``ensemble``, or your own with ``{}``.

    Source:
        Radford et al., Learning Transferable Visual Models From Natural Language Supervision,
        ICML 2021, arXiv:2103.00020, for the prompts and tau; the reference term is
        ours (docs/decisions.md).

    Differs:
        The paper takes a softmax over the user's names, whose answer depends on the other names
        and is 1 for a single one.
    """

    learns_from = "nothing"
    needs: tuple[str, ...] = ()
    open_vocabulary = True
    recipe = Recipe()
    texts: Tensor
    reference: Tensor

    def __init__(
        self, backbone: Backbone, names: Sequence[str], *, templates: str | Sequence[str] = "one"
    ):
        super().__init__()
        sentences = prompt_templates(templates)
        self.scale = backbone.scale
        self.register_buffer("texts", spelled(backbone, names, sentences), persistent=False)
        self.register_buffer("reference", backbone.texts(reference_names(), sentences))

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        return against_reference(features.pooled, self.texts, self.reference, self.scale)


def spelled(backbone: Backbone, names: Sequence[str], sentences: Sequence[str]) -> Tensor:
    """Unit vectors ``(c, d)`` of names; ``sofa|couch`` is the mean of its spellings."""
    spellings = [name.split("|") for name in names]
    flat = backbone.texts([one.strip() for several in spellings for one in several], sentences)
    parts = flat.split([len(several) for several in spellings])
    return F.normalize(torch.stack([part.mean(0) for part in parts]), dim=-1)


def against_reference(pooled: Tensor, texts: Tensor, reference: Tensor, scale: float) -> Tensor:
    """How much better each text fits than an everyday thing does, ``(n, c)``, in nats."""
    usual = torch.logsumexp(scale * pooled @ reference.T, dim=1) - math.log(len(reference))
    return scale * pooled @ texts.T - usual[:, None]
