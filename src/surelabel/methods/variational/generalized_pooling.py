"""Pool local vectors with learned weights of sorted values (generalized pooling)."""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from surelabel.shapes import check_shapes

TEMPERATURE = 0.1
MASKED_VALUE = -10_000.0


class GeneralizedPooling(nn.Module):
    """Pool local vectors: sort the values of each dimension, and average them with learned weights.

        pooled_d = Σ_r θ_r · (value of rank r in dimension d)

    The weights θ depend only on the number of vectors. A bidirectional GRU computes them from
    sinusoidal embeddings of the ranks. Maximum and mean pooling are special cases.

    Args:
        position_width: Width of the rank embeddings, an even number.
        hidden_width: Width of the GRU.

    Source:
        Chen et al., Learning the Best Pooling Strategy for Visual Semantic Embedding, CVPR 2021,
        arXiv:2011.04305.
    """

    def __init__(self, position_width: int = 32, hidden_width: int = 32):
        super().__init__()
        self.position_width = position_width
        self.gru = nn.GRU(position_width, hidden_width, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(hidden_width, 1, bias=False)
        self._weights_of_length: dict[int, Tensor] = {}
        self._cached_versions: tuple[object, ...] = ()

    def forward(self, vectors: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the pooled vectors, ``(n, d)``.

        Args:
            vectors: Local vectors, ``(n, p, d)``.
            mask: True where a vector exists, ``(n, p)``, at least one for each row. If None, all
                vectors exist.

        Raises:
            InputError: If the shapes do not match.
        """
        check_shapes(vectors=(vectors, "n p d"), mask=(mask, "n p"))
        n, p, _ = vectors.shape
        if mask is None:
            lengths = torch.full((n,), p)
        else:
            vectors = vectors.masked_fill(~mask[..., None], MASKED_VALUE)
            lengths = mask.sum(dim=1).cpu()
        ranked = vectors.sort(dim=1, descending=True).values
        exists = torch.arange(p, device=vectors.device) < lengths.to(vectors.device)[:, None]
        ranked = ranked.masked_fill(~exists[..., None], 0.0)
        unique, rows = lengths.unique(return_inverse=True)
        weights = self.rank_weights(unique.tolist()).to(vectors.dtype)
        weights = nn.functional.pad(weights, (0, p - weights.shape[1]))
        return torch.einsum("np,npd->nd", weights[rows.to(weights.device)], ranked)

    def rank_weights(self, lengths: list[int]) -> Tensor:
        """Return the weights θ for several numbers of vectors, ``(len(lengths), max(lengths))``.

        Each row has the sum 1, and is 0 after its number of vectors. Without gradients, the weights
        of each number are computed once.
        """
        if torch.is_grad_enabled():
            return self._compute_rank_weights(lengths)
        versions = tuple(version for p in self.parameters() for version in (id(p), p._version))
        if versions != self._cached_versions:
            self._weights_of_length, self._cached_versions = {}, versions
        new = [length for length in lengths if length not in self._weights_of_length]
        if new:
            rows = self._compute_rank_weights(new)
            self._weights_of_length |= {k: row[:k] for k, row in zip(new, rows, strict=True)}
        weights = [self._weights_of_length[length] for length in lengths]
        return nn.utils.rnn.pad_sequence(weights, batch_first=True)

    def _compute_rank_weights(self, lengths: list[int]) -> Tensor:
        positions = self.rank_embeddings(max(lengths)).expand(len(lengths), -1, -1)
        counts = torch.tensor(lengths)
        packed = pack_padded_sequence(positions, counts, batch_first=True, enforce_sorted=False)
        outputs, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        scores = self.linear(outputs.unflatten(-1, (2, -1)).mean(dim=-2))[..., 0]
        exists = torch.arange(max(lengths)) < counts[:, None]
        scores = scores.masked_fill(~exists.to(scores.device), MASKED_VALUE)
        weights: Tensor = (scores / TEMPERATURE).softmax(dim=-1)
        return weights

    def rank_embeddings(self, count: int) -> Tensor:
        """Return sinusoidal embeddings of the ranks 0 to count - 1, ``(count, position_width)``."""
        like = self.linear.weight
        ranks = torch.arange(count, dtype=torch.float64)[:, None]
        exponents = torch.arange(0, self.position_width, 2) / self.position_width
        angles = ranks * torch.exp(-math.log(10_000.0) * exponents.double())
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).to(like)
