"""Features of sentences and of their tokens, packed without padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.progress import Progress
from surelabel.records import Features

SENTENCES_PER_BLOCK = 256  # encoded together; their padded vectors are 40 MB for ViT-B-16


@dataclass(frozen=True)
class SentenceFeatures:
    """Vectors of s sentences and of their t tokens, without padding and in half precision.

    120,000 captions of 13 tokens need 1.7 GB at width 512.

    Attributes:
        pooled: Unit vectors of the sentences, ``(s, d)``, float16.
        tokens: Unit vectors of the tokens, sentence by sentence, ``(t, d)``, float16.
        starts: Index of the first token of each sentence, and the number of all tokens,
            ``(s + 1,)``.
    """

    pooled: Tensor
    tokens: Tensor
    starts: Tensor

    def __len__(self) -> int:
        return len(self.pooled)

    def take(self, rows: Tensor) -> Features:
        """Return features of the sentences in ``rows``, ``(n,)``, padded to the longest of them.

        Returns:
            Features in float32 with ``pooled`` ``(n, d)``, ``patches`` ``(n, k, d)`` and
            ``patch_mask`` ``(n, k)``; see ``Encoder.encode_sentence_tokens``.
        """
        starts, lengths = self.starts[rows], self.starts[rows + 1] - self.starts[rows]
        positions = torch.arange(int(lengths.max()) if len(rows) else 0)
        mask = positions < lengths[:, None]
        indices = torch.where(mask, starts[:, None] + positions, 0)
        patches = F.normalize(self.tokens[indices].float(), dim=-1) * mask[..., None]
        pooled = F.normalize(self.pooled[rows].float(), dim=-1)
        return Features(pooled, patches=patches, patch_mask=mask)


def encode_sentence_features(
    encoder: Encoder, sentences: Sequence[str], *, progress: Progress | None = None
) -> SentenceFeatures:
    """Return the vectors of sentences and of their tokens; each sentence is encoded once.

    Args:
        encoder: Encoder with a text tower.
        sentences: Sentences, length s, at least one.
        progress: Function called with the number of encoded sentences and the number of all.

    Raises:
        ConfigError: If the encoder has no text tower of open_clip.
    """
    pooled, tokens, lengths = [], [], []
    for start in range(0, len(sentences), SENTENCES_PER_BLOCK):
        block = encoder.encode_sentence_tokens(sentences[start : start + SENTENCES_PER_BLOCK])
        assert block.patches is not None
        assert block.patch_mask is not None
        pooled.append(block.pooled.cpu().half())
        tokens.append(block.patches[block.patch_mask].cpu().half())
        lengths.append(block.patch_mask.sum(dim=1).cpu())
        if progress:
            progress(min(start + SENTENCES_PER_BLOCK, len(sentences)), len(sentences))
    starts = F.pad(torch.cat(lengths).cumsum(dim=0), (1, 0))
    return SentenceFeatures(torch.cat(pooled), torch.cat(tokens), starts)
