"""Decode all patch tokens of an image by attention, with one query per label."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.errors import InputError

ATTENTION_HEADS = 8
MAX_GRID_SIDE = 50  # rows and columns with a position embedding


class QueryDecoderTokenAdapter(nn.Module):
    """Map the last tokens of an image tower to the memory of the query decoder.

        y = norm(W (x / 2 + W2 relu(W1 x) / 2)) + position

    x is a token, W, W1 and W2 are weight matrices, norm is a batch norm, and position is a learned
    position embedding.

    Args:
        trunk: Width of the tokens.
        width: Width of the output, an even number.
        hidden: Width of the layer between W1 and W2.

    Source:
        TailorCLIP, arXiv:2606.11626, the adapter, as in its released code.

    Differs:
        Scale and shift of the batch norm are trained; in the released code they are constant,
        because the optimizer does not contain them.
    """

    def __init__(self, trunk: int, *, width: int, hidden: int):
        super().__init__()
        self.bottleneck = nn.Sequential(
            nn.Linear(trunk, hidden), nn.ReLU(), nn.Linear(hidden, trunk)
        )
        self.projection = nn.Linear(trunk, width)
        self.norm = nn.BatchNorm1d(width)
        self.row_positions = nn.Parameter(torch.rand(MAX_GRID_SIDE, width // 2))
        self.column_positions = nn.Parameter(torch.rand(MAX_GRID_SIDE, width // 2))

    def forward(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """Return the memory ``(n, p, width)`` of tokens ``(n, p, w)``, row by row of the grid."""
        blended = 0.5 * self.bottleneck(tokens) + 0.5 * tokens
        normalized = self.norm(self.projection(blended).flatten(0, 1))
        memory: Tensor = normalized.unflatten(0, tokens.shape[:2]) + self.position_embeddings(grid)
        return memory

    def position_embeddings(self, grid: tuple[int, int]) -> Tensor:
        """Return position embeddings ``(p, width)``, in which a column part precedes a row part.

        Raises:
            InputError: If the grid has more than 50 rows or columns.
        """
        down, across = grid
        if max(grid) > MAX_GRID_SIDE:
            raise InputError(
                f"The patch grid must have at most {MAX_GRID_SIDE} rows and columns; got {down} by "
                f"{across}. Use a smaller method.image_size."
            )
        columns = self.column_positions[:across].expand(down, -1, -1)
        rows = self.row_positions[:down, None].expand(-1, across, -1)
        return torch.cat([columns, rows], dim=-1).flatten(0, 1)


class QueryDecoder(nn.Module):
    """Decode patch tokens with one learned query and one weight vector per label.

        score_c = w_c · decoder(queries, memory)_c + b_c

    w_c and b_c are the weight vector and the bias of label c.

    Random initial values are assigned to labels in alphabetical order, so that the order of the
    labels has no effect on their scores.

    Args:
        names: Labels; each label has one query.
        width: Width of queries and memory, a multiple of 8.
        layers: Number of decoder layers. Each layer has attention among queries, attention to the
            memory, and a feed-forward network.
        dropout: Dropout rate in training, in [0, 1).

    Source:
        Liu et al., Query2Label: A Simple Transformer Way to Multi-Label Classification,
        arXiv:2107.10834. The layers are those of Vaswani et al., Attention Is All You Need, NeurIPS
        2017, with leaky ReLU as activation, as in TailorCLIP's released code.
    """

    def __init__(self, names: Sequence[str], *, width: int, layers: int, dropout: float):
        super().__init__()
        layer = nn.TransformerDecoderLayer(
            width, ATTENTION_HEADS, width, dropout, activation=F.leaky_relu, batch_first=True
        )
        self.layers = nn.TransformerDecoder(layer, layers, nn.LayerNorm(width))
        rank = {name: i for i, name in enumerate(sorted(names))}
        order = [rank[name] for name in names]
        self.queries = nn.Parameter(torch.randn(len(names), width)[order])
        self.weight = nn.Parameter((2 * torch.rand(len(names), width)[order] - 1) / width**0.5)
        self.bias = nn.Parameter(torch.zeros(len(names)))

    def forward(self, memory: Tensor) -> Tensor:
        """Return the scores ``(n, c)`` of images with memory ``(n, p, width)``."""
        decoded: Tensor = self.layers(self.queries.expand(memory.shape[0], -1, -1), memory)
        # after a sum over the last axis, OpenVINO 2026.4 adds wrong biases in a batch of images
        scores: Tensor = torch.einsum("ncw,cw->nc", decoded, self.weight) + self.bias
        return scores
