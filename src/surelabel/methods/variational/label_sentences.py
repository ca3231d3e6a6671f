"""Encode sentences of labels, so that labels are scored like captions."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders import Encoder, prompt_templates
from surelabel.label_aliases import split_label_aliases
from surelabel.methods.pair_scoring.pair_projection import encode_label_sentences
from surelabel.records import Features


class LabelSentences(nn.Module):
    """Store the features of the sentences of labels, computed by the frozen text tower.

    Without tokens, each label has one vector, the mean over templates and synonyms. With tokens,
    each template and each synonym of a label is a separate sentence.

    Args:
        encoder: Encoder of the texts, which is not used if there are no labels.
        names: Labels, length c, which may be 0. Synonyms of one label are separated by ``|``.
        templates: Prompt templates; see ``TextScorer``.
        text_width: Width of the text vectors of the pairs. If None, the width of the encoder is
            used.
        with_tokens: Whether the features contain the vectors of tokens.
        trained_blocks: Number of last blocks of the text tower whose input tokens the features
            contain instead, or 0.

    Raises:
        ConfigError: If there are labels, and the encoder has no text tower or another width than
            ``text_width``.
    """

    pooled: Tensor
    patches: Tensor | None
    patch_mask: Tensor | None
    block_tokens: Tensor | None

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        templates: str | Sequence[str],
        *,
        text_width: int | None,
        with_tokens: bool,
        trained_blocks: int = 0,
    ):
        super().__init__()
        features = Features(encode_label_sentences(encoder, names, templates, text_width))
        self.sentence_counts = [1] * len(names)
        if (with_tokens or trained_blocks) and names:
            groups = [
                [template.replace("{}", synonym) for synonym in split_label_aliases(name)]
                for name in names
                for template in prompt_templates(templates)
            ]
            n_templates = len(groups) // len(names)
            self.sentence_counts = [n_templates * len(split_label_aliases(name)) for name in names]
            sentences = [sentence for group in groups for sentence in group]
            if trained_blocks:
                features = encoder.encode_sentence_block_tokens(sentences, depth=trained_blocks)
            else:
                features = encoder.encode_sentence_tokens(sentences)
        self.layer = -trained_blocks - 1
        block_tokens = (features.layers or {}).get(self.layer)
        self.register_buffer("pooled", features.pooled, persistent=False)
        self.register_buffer("patches", features.patches, persistent=False)
        self.register_buffer("patch_mask", features.patch_mask, persistent=False)
        self.register_buffer("block_tokens", block_tokens, persistent=False)

    def features(self) -> Features:
        """Return the features of all sentences of the labels, in the order of the labels."""
        layers = None if self.block_tokens is None else {self.layer: self.block_tokens}
        return Features(
            self.pooled, patches=self.patches, patch_mask=self.patch_mask, layers=layers
        )

    def mean_over_sentences(self, vectors: Tensor) -> Tensor:
        """Return one unit vector per label, ``(c, d)``, from those of the sentences, ``(s, d)``."""
        groups = vectors.split(self.sentence_counts)
        if not groups:
            return vectors
        return F.normalize(torch.stack([group.mean(dim=0) for group in groups]), dim=-1)
