"""Encode labels with a learned context: vectors in place of the words before the label."""

from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from surelabel.encoders.towers.text_tower import END_TOKEN_POOLING, text_tower
from surelabel.errors import ConfigError, InputError
from surelabel.label_aliases import split_label_aliases

SENTENCES_PER_CHUNK = 128  # sentences with activations in memory at once; 1.3 GB for ViT-B-16


class ContextPromptTextEncoder:
    """Encoder of a fixed set of labels with a learned context, in a frozen text tower.

        [start] v_1 … v_m [tokens of the label] . [end]

    where v_1 to v_m are the context, vectors at the input of the tower. The text of a label has no
    other words. The context is inserted after the start token, or before the label if the tokenizer
    adds no start token. All tokens after the context are shifted by m positions.

    If the attention of the tower is causal, tokens after the last end token have no effect and are
    removed. Sentences are encoded in chunks of at most 128. If there are several chunks and
    gradients are recorded, the activations of a chunk are computed again in the backward pass, so
    that the memory for activations does not grow with the number of labels.

    The encoder is not an ``nn.Module``, so a module that contains the encoder does not save the
    weights of the tower. A deep copy returns the same object.

    Args:
        model: Model of open_clip.
        tokenizer: Function that converts ``s`` sentences to token ids ``(s, k)``, where ``k`` is
            the context length of the tower.
        names: The labels. Different spellings of a label are separated by ``|``, such as
            ``sofa|couch``.
        length: Number m of context vectors, >= 1.

    Raises:
        ConfigError: If the text tower is not a transformer of open_clip, ``length`` is not an
            integer >= 1, or the context and a label together are longer than the tower allows.

    Source:
        Zhou et al., Learning to Prompt for Vision-Language Models, IJCV 2022, arXiv:2109.01134,
        section 3.2, with the label at the end.

    Differs:
        The authors run all 77 positions of the tower. Here, positions after the last end token are
        removed, which has no effect on the result. If a tokenizer has other tokens for a word at
        the beginning of a text (SigLIP 2), the label is encoded with the tokens for the beginning.
    """

    def __init__(self, model: Any, tokenizer: Any, names: Sequence[str], *, length: int):
        if not isinstance(length, int) or length < 1:
            raise ConfigError(
                "context_length, the number of context vectors, must be a whole number of at least "
                f"1; got {length!r}."
            )
        self._tower = tower = text_tower(model)
        self._model, self._tokenizer, self.length = model, tokenizer, length
        self.width = int(tower.transformer.width)
        spellings = [split_label_aliases(name) for name in names]
        sentences = [f"{spelling.strip()}." for group in spellings for spelling in group]
        self._label = torch.tensor([i for i, group in enumerate(spellings) for _ in group])
        self._n_labels = len(spellings)
        tokens = tokenizer(sentences).to(tower.positional_embedding.device)
        start = self._n_start_tokens()
        self._check_sentence_lengths(sentences, tokens)
        order = tower.end_positions(tokens).argsort(stable=True)  # chunks of similar length
        self._inverse_order, self._label = order.argsort().cpu(), self._label[order.cpu()]
        self._tokens = tokens[order]
        self._before, self._after = self._tokens[:, :start], self._tokens[:, start:-length]

    def with_names(self, names: Sequence[str]) -> Self:
        """Return an encoder of other labels, with the same text tower and length of the context.

        Raises:
            ConfigError: If the context and a label are longer than the tower allows.
        """
        return type(self)(self._model, self._tokenizer, names, length=self.length)

    def encode(self, context: Tensor) -> Tensor:
        """Return one unit vector for each of ``c`` labels, ``(c, d)``.

        The vector of a label with several spellings is the normalized mean over its spellings.

        Args:
            context: Context vectors of all labels, ``(m, w)``, or of each label, ``(c, m, w)``.

        Raises:
            InputError: If the context has another shape.
        """
        shapes = [(self.length, self.width), (self._n_labels, self.length, self.width)]
        if tuple(context.shape) not in shapes:
            raise InputError(
                f"context must have shape {shapes[0]} or {shapes[1]}; got {tuple(context.shape)}."
            )
        rows = torch.arange(len(self._label))
        if context.ndim == 2:
            vectors = self._encode_sentences(rows, context[None], torch.zeros_like(rows))
        else:
            vectors = self._encode_sentences(rows, context, self._label)
        return self._average_spellings(vectors[:, None])[0]

    def encode_for_images(self, contexts: Tensor) -> Tensor:
        """Return one unit vector per image and label, ``(n, c, d)``.

        Args:
            contexts: Context vectors of n images, ``(n, m, w)``.

        Raises:
            InputError: If the contexts have another shape.
        """
        if contexts.ndim != 3 or tuple(contexts.shape[1:]) != (self.length, self.width):
            raise InputError(
                f"contexts must have shape (n, {self.length}, {self.width}); got "
                f"{tuple(contexts.shape)}."
            )
        n = len(contexts)
        rows = torch.arange(len(self._label)).repeat_interleave(n)
        images = torch.arange(n).repeat(len(self._label))
        vectors = self._encode_sentences(rows, contexts, images)
        return self._average_spellings(vectors.unflatten(0, (-1, n)))

    @torch.no_grad()
    def embed_words(self, words: str) -> Tensor:
        """Return the token embeddings of a text, without start and end token, ``(m, w)``.

        The embeddings are the initial context that is equal to the words.
        """
        device = self._tower.positional_embedding.device
        tokens, empty = self._tokenizer([words, ""]).to(device)
        n_tokens, n_empty = self._tower.token_mask(torch.stack([tokens, empty])).sum(1).tolist()
        start = self._n_start_tokens()
        words_tokens = tokens[start : start + n_tokens - n_empty]
        embeddings: Tensor = self._tower.token_embedding(words_tokens)
        return embeddings.float()

    def _n_start_tokens(self) -> int:
        """Return 1 if the tokenizer adds a start token, otherwise 0."""
        first, second = self._tokenizer(["a", "z"])
        return int(first[0] == second[0])

    def _check_sentence_lengths(self, sentences: Sequence[str], tokens: Tensor) -> None:
        """Check that the context and each sentence fit into the context length of the tower.

        Raises:
            ConfigError: If the context and a label together are longer than the tower allows.
        """
        limit = tokens.shape[1]
        lengths = self._tower.token_mask(tokens).sum(dim=1).tolist()
        longest = max(range(len(lengths)), key=lengths.__getitem__, default=None)
        if longest is not None and lengths[longest] + self.length > limit:
            room = limit - lengths[longest]  # 0 if the tokenizer cuts the label off
            or_more = "" if room else " or more"
            context = f"Use a context of at most {room} vectors, or a" if room else "Use a"
            raise ConfigError(
                f"The context and a label must have at most {limit} tokens together; got "
                f"{self.length} context vectors and {lengths[longest]}{or_more} tokens of "
                f"{sentences[longest]!r}. {context} shorter label."
            )

    def _encode_sentences(self, rows: Tensor, contexts: Tensor, index: Tensor) -> Tensor:
        """Return unit vectors of sentences, ``(s, d)``.

        Args:
            rows: Row numbers of the sentences, ``(s,)``.
            contexts: Groups of context vectors, ``(g, m, w)``.
            index: Index of the group of each sentence, ``(s,)``.
        """
        parts = (rows.split(SENTENCES_PER_CHUNK), index.split(SENTENCES_PER_CHUNK))
        chunks = list(zip(*parts, strict=True))
        if len(chunks) < 2 or not (torch.is_grad_enabled() and contexts.requires_grad):
            return torch.cat([self._encode_chunk(contexts, *chunk) for chunk in chunks])
        vectors: list[Tensor] = [
            checkpoint(
                self._encode_chunk, contexts, *chunk, use_reentrant=False, preserve_rng_state=False
            )
            for chunk in chunks
        ]
        return torch.cat(vectors)

    def _encode_chunk(self, contexts: Tensor, rows: Tensor, index: Tensor) -> Tensor:
        """Return unit vectors of the sentences of one chunk, ``(s, d)``."""
        tower, length = self._tower, self.length
        rows = rows.to(self._tokens.device)
        ends = tower.end_positions(self._tokens[rows]) + length
        n_after = int(ends.max()) + 1 - self._before.shape[1] - length
        after = self._after[rows, :n_after] if self._is_cut_at_end else self._after[rows]
        context = contexts[index.to(contexts.device)].to(self._tokens.device, tower.dtype)
        embedded = [
            tower.token_embedding(self._before[rows]).to(tower.dtype),
            context,
            tower.token_embedding(after).to(tower.dtype),
        ]
        hidden = tower.add_positions(torch.cat(embedded, dim=1))
        hidden = tower.transformer(hidden, attn_mask=tower.attention_mask(hidden))
        pooled = tower.select_sentence_token(hidden, ends)
        return F.normalize(tower.project(pooled).float(), dim=-1)

    @property
    def _is_cut_at_end(self) -> bool:
        """Return whether tokens after the last end token have no effect."""
        return self._tower.is_causal and self._tower.pool in END_TOKEN_POOLING

    def _average_spellings(self, vectors: Tensor) -> Tensor:
        """Return unit vectors of labels ``(n, c, d)``, from sentence vectors ``(s, n, d)``."""
        label = self._label.to(vectors.device)
        shape = (self._n_labels, *vectors.shape[1:])
        sums = vectors.new_zeros(shape).index_add(0, label, vectors)
        return F.normalize(sums, dim=-1).transpose(0, 1)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
