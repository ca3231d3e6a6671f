"""Zero-shot: names in, scores out, nothing learnt."""

from collections.abc import Sequence

from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.methods.protocol import Recipe
from surelabel.methods.wording import Wording
from surelabel.records import Features


class ZeroShot(nn.Module):
    """Compare a picture with each name, and with what it resembles anyway.

        score = tau · cos(x, t_c) - log mean_r exp(tau · cos(x, t_r))

    The second term runs over a fixed list of everyday things that comes with the package, never
    over the user's own names. A name's score is therefore its own: it does not change when
    other names are added, and one name alone has a score that means something. Other domains hold
    the names against each other.

    Args:
        backbone: Gives the texts and tau.
        names: What to look for; ``sofa|couch`` are two spellings of one label.
        templates, domain, background, scale: As of ``Wording``.

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
    side: int | None = None
    open_vocabulary = True
    recipe = Recipe()

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
        self.wording = Wording(
            backbone, names, templates=templates, domain=domain, background=background, scale=scale
        )

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        scores: Tensor = self.wording(features.pooled)
        return scores
