"""Compute features of sentences and of their tokens, packed without padding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.errors import InputError
from surelabel.progress import Progress, report_progress
from surelabel.records import Features

SENTENCES_PER_BLOCK = 256  # encoded together; their padded vectors are 40 MB for ViT-B-16


@dataclass(frozen=True)
class SentenceFeatures:
    """Vectors of s sentences and of their t tokens, without padding and in half precision.

    120,000 captions of 13 tokens need 1.7 GB at width 512.

    Attributes:
        pooled: Unit vectors of the sentences, ``(s, d)``, float16.
        tokens: Vectors of the tokens, sentence by sentence, ``(t, d)`` or ``(t, w)``, float16.
        starts: Index of the first token of each sentence, and the number of all tokens,
            ``(s + 1,)``.
        layer: Index of the layer whose outputs are the tokens, as in ``Features.layers``. If None,
            the tokens are unit vectors in the joint space.
    """

    pooled: Tensor
    tokens: Tensor
    starts: Tensor
    layer: int | None = None

    def __len__(self) -> int:
        return len(self.pooled)

    def take(self, rows: Tensor) -> Features:
        """Return features of the sentences in ``rows``, ``(n,)``, padded to the longest of them.

        Returns:
            Features in float32 with ``pooled`` ``(n, d)``, ``patch_mask`` ``(n, k)``, and either
            ``patches`` ``(n, k, d)`` or ``layers[layer]`` ``(n, k, w)``; see
            ``Encoder.encode_sentence_tokens`` and ``Encoder.encode_sentence_block_tokens``.
        """
        starts, lengths = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        positions = torch.arange(int(lengths.max()) if len(rows) else 0)
        mask = positions < lengths[:, None]
        indices = torch.where(mask, starts[:, None] + positions, 0)
        tokens = self.tokens[indices].float() * mask[..., None]
        pooled = F.normalize(self.pooled[rows].float(), dim=-1)
        if self.layer is not None:
            return Features(pooled, layers={self.layer: tokens}, patch_mask=mask)
        return Features(pooled, patches=F.normalize(tokens, dim=-1), patch_mask=mask)


def encode_sentence_features(
    encoder: Encoder, sentences: Sequence[str], *, progress: Progress | None = None
) -> SentenceFeatures:
    """Return the vectors of sentences and of their tokens; each sentence is encoded once.

    Args:
        encoder: Encoder with a text tower.
        sentences: Sentences, length s, at least one.
        progress: Function called with the number of encoded sentences and of all sentences.

    Raises:
        ConfigError: If the encoder has no text tower of open_clip.
    """
    return _pack_sentences(
        sentences, encoder.encode_sentence_tokens, lambda block: block.patches, progress=progress
    )


def encode_sentence_block_features(
    encoder: Encoder, sentences: Sequence[str], *, depth: int
) -> SentenceFeatures:
    """Return sentence vectors, and the input tokens of the last ``depth`` text blocks.

    Args:
        encoder: Encoder with a causal text tower.
        sentences: Sentences, length s, at least one.
        depth: Number of last blocks, 1 or more.

    Raises:
        ConfigError: If the encoder has no causal text tower of open_clip, or the tower has fewer
            than ``depth`` blocks.
        InputError: If a token cannot be stored in half precision.
    """
    layer = -depth - 1
    packed = _pack_sentences(
        sentences,
        lambda block: encoder.encode_sentence_block_tokens(block, depth=depth),
        lambda block: (block.layers or {}).get(layer),
    )
    if not packed.tokens.isfinite().all():
        raise InputError(
            f"The input tokens of the last {depth} text blocks of {encoder.name} must be finite in "
            "fp16; got NaN, infinity or a value above 65,504. Use fewer or more blocks."
        )
    return replace(packed, layer=layer)


def _pack_sentences(
    sentences: Sequence[str],
    encode: Callable[[Sequence[str]], Features],
    tokens_of: Callable[[Features], Tensor | None],
    *,
    progress: Progress | None = None,
) -> SentenceFeatures:
    """Encode sentences in blocks, and join their tokens without padding."""
    pooled, tokens, lengths = [], [], []
    for start in range(0, len(sentences), SENTENCES_PER_BLOCK):
        block = encode(sentences[start : start + SENTENCES_PER_BLOCK])
        padded, mask = tokens_of(block), block.patch_mask
        assert padded is not None
        assert mask is not None
        pooled.append(block.pooled.cpu().half())
        tokens.append(padded[mask].cpu().half())
        lengths.append(mask.sum(dim=1).cpu())
        n_done = min(start + SENTENCES_PER_BLOCK, len(sentences))
        report_progress(progress, n_done, len(sentences), "captions")
    starts = F.pad(torch.cat(lengths).cumsum(dim=0), (1, 0))
    return SentenceFeatures(torch.cat(pooled), torch.cat(tokens), starts)
