"""Scores that neither a picture nor a name is ahead in by nature, fused with those of pairs."""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.backbones import Backbone
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.methods.protocol import Recipe
from surelabel.methods.wording import Wording, others
from surelabel.records import Features
from surelabel.views.relative import FEWEST

MOST = 2000  # texts of pairs in all, however long the list
LEAST = 1e-6  # a deviation below this is rounding


class Standardised(nn.Module):
    """Take from each score what its picture and its name add everywhere; ask for pairs as well.

        z_ij = column(row(s_ij))        row, column: less the mean, over the deviation
        score_ij = ½ z_ij + ½ w_j · (sorted_k z_i(j and k), z_ij)

    Column statistics and the weights w_j come from pictures without labels, which ``learn`` is
    given: usually the very pictures to be scored (then it is transductive), or others like them.
    Afterwards each picture is scored on its own. Pairs ("a photo of a lion and a guitar.") are
    standardised by the row of the single names in the same words; w_j is their first principal
    component over the pictures, with sum of absolute values 1 and a positive mean.

    Args:
        backbone: Gives the texts and tau.
        names: What to look for, three or more; ``sofa|couch`` are two spellings of one label, and
            pairs take the first.
        templates: As of ``Wording``; pairs have one of their own.
        domain: As of ``Wording``. All that are linear in the cosines give the same here.
        background: As of ``Wording``; background words count in the rows.
        scale: As of ``Wording``.
        compounds: With how many others a name is paired: with those whose texts are nearest, and
            with fewer where a list is so long that there would be more than 2,000 pairs. 0 only
            standardises.

    Raises:
        ConfigError: there are fewer than three names, or a setting is out of its range.

    Source:
        SPARC (Miller et al., CVPR 2025), sections 3.2 to 3.4.

    Differs:
        The paper lets a language model write what occurs together; here nearest names are paired.
        It takes 80 templates for single names. Column statistics are kept, so that single pictures
        can be scored.

        No gain was found on scenes-80: of validation pictures 49.9 (tiny-vit) and 50.0 (tiny-rn)
        mAP without pairs, 49.6 to 49.8 with 2 to 20, nearest or random, and 50.4 without pairs
        from log-odds of a softmax, where ``zero_shot`` has 51.4 and 51.1.
    """

    learns_from = "images"
    needs: tuple[str, ...] = ()
    side: int | None = None
    open_vocabulary = False
    recipe = Recipe()

    mean: Tensor
    deviation: Tensor
    weights: Tensor
    seen: Tensor

    def __init__(
        self,
        backbone: Backbone,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "reference",
        background: str | Sequence[str] = "none",
        scale: float | None = None,
        compounds: int = 10,
    ):
        super().__init__()
        if compounds < 0:
            raise ConfigError(f"compounds must be 0 or more. Got {compounds}.")
        if len(names) < FEWEST:
            raise ConfigError(
                f"standardised holds names against each other and needs {FEWEST} or more. Got "
                f"{len(names)}; add names, or take zero_shot."
            )
        words, plain = others(background, names), [name.split("|")[0].strip() for name in names]
        self.single = Wording(
            backbone, [*names, *words], templates=templates, domain=domain, scale=scale
        )
        self.names, self.in_row = len(names), len(names) + len(words)
        near = nearest(self.single.texts[: self.names], compounds)
        pairs = [f"{plain[i]} and a {plain[j]}" for i, row in enumerate(near) for j in row]
        self.joint = (
            Wording(backbone, [*plain, *words, *pairs], domain=domain, scale=scale)
            if pairs
            else None
        )
        columns = self.names + len(pairs)
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("deviation", torch.ones(columns))
        self.register_buffer("weights", torch.zeros(self.names, columns // self.names))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def learn(self, features: Features) -> None:
        """Keep mean and deviation of every column, and the weights, of pictures without labels.

        Raises:
            InputError: there are fewer than two pictures.
        """
        if len(features.pooled) < 2:
            raise InputError(
                f"Columns are standardised over two pictures or more. Got {len(features.pooled)}; "
                "give the pictures that are to be scored, or more like them."
            )
        rows = self._rows(features.pooled)
        spread = rows.std(dim=0)
        if bool((spread[: self.names] <= LEAST).all()):
            warnings.warn(
                f"These {len(rows)} pictures are alike, so that no name sets one apart and every "
                "score of theirs is 0: give pictures that differ, or take zero_shot.",
                stacklevel=3,  # past no_grad
            )
        self.mean.copy_(rows.mean(dim=0))
        self.deviation.copy_(torch.where(spread > LEAST, spread, 1.0))
        self.weights.copy_(first_component(self._sorted(rows)))
        self.seen.fill_(len(rows))

    def forward(self, features: Features) -> Tensor:
        """Scores ``(n, c)`` of ``features.pooled`` ``(n, d)``.

        Raises:
            NotFitted: nothing was learnt yet.
        """
        if not self.seen:
            raise NotFitted(
                "standardised holds a name's scores against those of other pictures and has seen "
                "none: fit it on pictures first; they need no labels."
            )
        columns = self._sorted(self._rows(features.pooled))
        return ((columns * self.weights).sum(dim=-1) + columns[..., -1]) / 2

    def _rows(self, vectors: Tensor) -> Tensor:
        """Scores of all names, then of all pairs, ``(n, c + c · k)``, by what their row holds."""
        single = by_row(self.single(vectors), self.in_row)[:, : self.names]
        if self.joint is None:
            return single
        return torch.cat([single, by_row(self.joint(vectors), self.in_row)[:, self.in_row :]], 1)

    def _sorted(self, rows: Tensor) -> Tensor:
        """Of each name its pairs, rising, then itself, ``(n, c, k + 1)``, standardised."""
        columns = (rows - self.mean) / self.deviation
        single, pairs = columns[:, : self.names], columns[:, self.names :]
        rising = pairs.view(len(rows), self.names, -1).sort(dim=-1).values
        return torch.cat([rising, single[..., None]], dim=-1)


def nearest(texts: Tensor, count: int) -> list[list[int]]:
    """For each name the names whose texts ``(c, d)`` are nearest to its own, the nearest first.

    As many as ``count``; fewer where there are no more, or more than 2,000 pairs in all.

    Example:
        >>> nearest(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), 1)
        [[1], [0], [1]]
    """
    names = len(texts)
    count = min(count, names - 1, MOST // names)
    alike = (texts @ texts.T).fill_diagonal_(-torch.inf)
    found: list[list[int]] = alike.argsort(dim=1, descending=True, stable=True)[:, :count].tolist()
    return found


def by_row(scores: Tensor, own: int) -> Tensor:
    """Less the mean of the first ``own`` scores of a row, over their deviation; 0 if they are one.

    Example:
        >>> by_row(torch.tensor([[1.0, 2.0, 3.0, 7.0]]), 3)
        tensor([[-1.,  0.,  1.,  5.]])
    """
    first = scores[:, :own]
    spread = first.std(dim=1, keepdim=True)
    apart = scores - first.mean(dim=1, keepdim=True)
    return torch.where(spread > LEAST, apart / spread.clamp(min=LEAST), 0.0)


def first_component(columns: Tensor) -> Tensor:
    """Weights along which columns vary most together, their absolute values of sum 1.

    Args:
        columns: For each of ``c`` names ``k`` scores of ``n`` pictures, ``(n, c, k)``.

    Returns:
        ``(c, k)``, of positive mean; all the same where nothing varies.

    Example:
        >>> first_component(torch.tensor([[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]]]))
        tensor([[0.5000, 0.5000]])
    """
    apart = (columns - columns.mean(dim=0)).double()
    sizes, directions = torch.linalg.eigh(torch.einsum("nck,ncl->ckl", apart, apart))
    first = directions[..., -1]
    first = torch.where(sizes[..., -1:] > LEAST**2, first, 1.0)
    first = first * torch.where(first.mean(dim=-1, keepdim=True) < 0, -1.0, 1.0)
    return (first / first.abs().sum(dim=-1, keepdim=True)).to(columns.dtype)
