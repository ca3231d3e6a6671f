"""A head of queries: one for each name, which looks at all places of a picture."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.errors import InputError

HEADS = 8
FARTHEST = 50  # places down and across for which there are positions


class Places(nn.Module):
    """The last tokens of an image tower, made into what queries look at.

        y = norm(W (x / 2 + W2 relu(W1 x) / 2)) + position

    Args:
        trunk: Width of the tokens.
        width: Width of what comes out; even.
        hidden: Width of the layer between W1 and W2.

    Source:
        TailorCLIP, arXiv:2606.11626, the adapter, as in its released code.

    Differs:
        Scale and shift of the batch norm are trained like the rest; the released code leaves them
        out of its optimizer.
    """

    def __init__(self, trunk: int, *, width: int, hidden: int):
        super().__init__()
        self.bottleneck = nn.Sequential(
            nn.Linear(trunk, hidden), nn.ReLU(), nn.Linear(hidden, trunk)
        )
        self.projection = nn.Linear(trunk, width)
        self.norm = nn.BatchNorm1d(width)
        self.down = nn.Parameter(torch.rand(FARTHEST, width // 2))
        self.across = nn.Parameter(torch.rand(FARTHEST, width // 2))

    def forward(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """From tokens ``(n, p, w)``, row by row of the grid, to ``(n, p, width)``."""
        mixed = 0.5 * self.bottleneck(tokens) + 0.5 * tokens
        seen = self.norm(self.projection(mixed).flatten(0, 1))
        placed: Tensor = seen.unflatten(0, tokens.shape[:2]) + self.positions(grid)
        return placed

    def positions(self, grid: tuple[int, int]) -> Tensor:
        """What tells the places of a grid apart, ``(p, width)``: their column, then their row.

        Raises:
            InputError: the grid is finer than there are positions.
        """
        down, across = grid
        if max(grid) > FARTHEST:
            raise InputError(
                f"Pictures may have {FARTHEST} places down and across at most. Got {down} by "
                f"{across}; take a smaller method.side."
            )
        columns = self.across[:across].expand(down, -1, -1)
        rows = self.down[:down, None].expand(-1, across, -1)
        return torch.cat([columns, rows], dim=-1).flatten(0, 1)


class Queries(nn.Module):
    """A query for each name asks the others and the places, layer by layer; then it is weighed.

        score_c = w_c · decoder(queries, places)_c + b_c

    What is drawn at the start is dealt out in the order of the alphabet, so that the order in
    which names are given only orders the columns.

    Args:
        names: One query each.
        width: Of queries and places.
        layers: Each one attention among queries, one to places, and one network.
        dropout: Share of what is dropped in training.

    Source:
        Liu et al., Query2Label: A Simple Transformer Way to Multi-Label Classification,
        arXiv:2107.10834; the layers are those of Vaswani et al., Attention Is All You Need,
        NeurIPS 2017, with a leaky rectifier, as in TailorCLIP's released code.
    """

    def __init__(self, names: Sequence[str], *, width: int, layers: int, dropout: float):
        super().__init__()
        layer = nn.TransformerDecoderLayer(
            width, HEADS, width, dropout, activation=F.leaky_relu, batch_first=True
        )
        self.layers = nn.TransformerDecoder(layer, layers, nn.LayerNorm(width))
        place = {name: row for row, name in enumerate(sorted(names))}
        dealt = [place[name] for name in names]
        self.queries = nn.Parameter(torch.randn(len(names), width)[dealt])
        self.weight = nn.Parameter((2 * torch.rand(len(names), width)[dealt] - 1) / width**0.5)
        self.level = nn.Parameter(torch.zeros(len(names)))

    def forward(self, places: Tensor) -> Tensor:
        """Scores ``(n, c)`` of what is at the places ``(n, p, width)`` of pictures."""
        decoded: Tensor = self.layers(self.queries.expand(len(places), -1, -1), places)
        return (decoded * self.weight).sum(dim=-1) + self.level
