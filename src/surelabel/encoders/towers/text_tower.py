"""Extract the parts of an open_clip text tower, to run its layers on other embeddings."""

from dataclasses import dataclass
from typing import Any

import torch
from open_clip.model import CLIP
from open_clip.transformer import ResidualAttentionBlock, TextTransformer
from torch import Tensor, nn

from surelabel.errors import ConfigError

END_TOKEN_POOLING = ("argmax", "eos")


@dataclass(frozen=True)
class TextTower:
    """Parts of a text tower that is a transformer over token embeddings.

    In shapes, ``s`` is the number of sentences, and ``k`` is the number of tokens of a sentence.
    ``w`` is the width of the tower, and ``d`` is the dimension of the joint space.

    Attributes:
        token_embedding: Embedding layer of the token ids.
        positional_embedding: Position embeddings, which are added to the token embeddings.
        transformer: Transformer of the tower.
        ln_final: Layer norm after the last block.
        projection: Projection to the joint space. If None, the tower has no projection.
        pool: Token whose output is the sentence vector: ``first``, ``last``, ``argmax`` (the token
            with the largest id) or ``eos`` (the end token).
        end_token_id: Id of the end token. If None, the end token of a sentence is the token with
            the largest id.
        is_causal: Whether a token attends only to itself and to earlier tokens.
    """

    token_embedding: Any
    positional_embedding: Tensor
    transformer: Any
    ln_final: Any
    projection: Any
    pool: str
    end_token_id: int | None
    is_causal: bool

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of the numbers in the transformer."""
        dtype: torch.dtype = self.transformer.get_cast_dtype()
        return dtype

    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """Return token embeddings plus position embeddings, ``(s, k, w)``.

        Args:
            tokens: Token ids, ``(s, k)``.
        """
        return self.add_positions(self.token_embedding(tokens).to(self.dtype))

    def add_positions(self, embeddings: Tensor) -> Tensor:
        """Return embeddings ``(s, k, w)`` plus the position embeddings of the first k positions."""
        return embeddings + self.positional_embedding[: embeddings.shape[1]].to(self.dtype)

    def end_positions(self, tokens: Tensor) -> Tensor:
        """Return the position of the end token in each sentence, ``(s,)``.

        The end token is the first token with the id ``end_token_id``. If ``end_token_id`` is None,
        the end token is the first token with the largest id.

        Args:
            tokens: Token ids, ``(s, k)``.
        """
        is_end = tokens if self.end_token_id is None else (tokens == self.end_token_id).int()
        positions: Tensor = is_end.argmax(dim=-1)
        return positions

    def token_mask(self, tokens: Tensor) -> Tensor:
        """Return a mask ``(s, k)`` of the tokens of each sentence, with start and end token.

        If the id of the end token is known, all tokens after the end token are padding. Otherwise,
        padding is detected as in :func:`text_token_mask`.

        Args:
            tokens: Token ids, ``(s, k)``.
        """
        if self.end_token_id is None:
            return text_token_mask(tokens)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return positions <= self.end_positions(tokens)[:, None]

    def attention_mask(self, embeddings: Tensor) -> Tensor | None:
        """Return the additive attention mask of embeddings ``(s, k, w)``, ``(k, k)``.

        If each token attends to all tokens, the mask is None.
        """
        return causal_attention_mask(embeddings) if self.is_causal else None

    def select_sentence_token(self, outputs: Tensor, ends: Tensor) -> Tensor:
        """Return the output of the token that is the sentence vector, ``(s, w)``.

        Args:
            outputs: Outputs of all tokens, ``(s, k, w)``.
            ends: Positions of the end tokens, ``(s,)``.
        """
        if self.pool in END_TOKEN_POOLING:
            return outputs[torch.arange(len(outputs), device=outputs.device), ends]
        return outputs[:, 0 if self.pool == "first" else -1]

    def project(self, last: Tensor) -> Tensor:
        """Project outputs of the last block to the joint space, without normalization.

        Args:
            last: Outputs of the last block, ``(…, w)``.

        Returns:
            Vectors in the joint space, ``(…, d)``.
        """
        return project_text_outputs(last, self.ln_final, self.projection)


def causal_attention_mask(embeddings: Tensor) -> Tensor:
    """Return the additive mask of causal attention between embeddings ``(s, k, w)``, ``(k, k)``."""
    k = embeddings.shape[1]
    blocked = torch.full((k, k), -torch.inf, dtype=embeddings.dtype, device=embeddings.device)
    return blocked.triu(1)


def project_text_outputs(last: Tensor, norm: Any, projection: Any) -> Tensor:
    """Project outputs of the last block ``(…, w)`` to the joint space, ``(…, d)``.

    The vectors are not normalized to length 1.

    Args:
        last: Outputs of the last block, ``(…, w)``.
        norm: Layer norm after the last block.
        projection: Matrix ``(w, d)`` or linear layer. If None, the tower has no projection.
    """
    joint: Tensor = norm(last)
    if isinstance(projection, nn.Linear):
        joint = projection(joint)
    elif projection is not None:
        joint = joint @ projection
    return joint


def text_token_mask(tokens: Tensor) -> Tensor:
    """Return a mask ``(s, k)`` of the tokens of each sentence, with start and end token.

    Padding consists of tokens with the id 0 or of repetitions of the end token.

    Args:
        tokens: Token ids, ``(s, k)``.

    Example:
        >>> text_token_mask(torch.tensor([[18, 3, 19, 0, 0], [18, 3, 7, 19, 19]])).int()
        tensor([[1, 1, 1, 0, 0],
                [1, 1, 1, 1, 0]], dtype=torch.int32)
    """
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    last = tokens[:, -1:]
    n_different = torch.where(tokens != last, positions + 1, 0).amax(dim=1, keepdim=True)
    return positions < n_different + (last != 0)


def text_tower(model: Any) -> TextTower:
    """Return the parts of the text tower of an open_clip model.

    Raises:
        ConfigError: If the text tower is not a transformer of open_clip (for example, a text tower
            of Hugging Face), pools a class token at the end of the text (as in CoCa), or masks the
            padding.
    """
    text: Any = model if isinstance(model, CLIP) else getattr(model, "text", None)
    prefix = "text_" if isinstance(text, CLIP) else ""
    pool = getattr(text, f"{prefix}pool_type", None)
    if (
        not isinstance(text, CLIP | TextTransformer)
        or pool not in ("first", "last", *END_TOKEN_POOLING)
        or getattr(text, "cls_emb", None) is not None
        or getattr(text, "use_pad_mask", False)
    ):
        raise ConfigError(
            "Learned prompts need a text tower that is a transformer of open_clip, as in CLIP or "
            f"SigLIP; got an unsupported {type(text).__name__}. Use tiny-vit or ViT-B-16/openai."
        )
    return TextTower(
        text.token_embedding,
        text.positional_embedding,
        text.transformer,
        text.ln_final,
        text.text_projection,
        pool=pool,
        end_token_id=getattr(text, f"{prefix}eos_id") if pool == "eos" else None,
        is_causal=text.attn_mask is not None,
    )


def causal_text_tower(model: Any) -> TextTower:
    """Return the parts of a causal text tower that pools the end token, as in CLIP.

    Raises:
        ConfigError: If the text tower is not causal, does not pool the end token, or is not a text
            tower of open_clip with standard transformer blocks.
    """
    try:
        tower = text_tower(model)
    except ConfigError:
        tower = None
    if (
        tower is None
        or not tower.is_causal
        or tower.pool not in END_TOKEN_POOLING
        or not all(isinstance(b, ResidualAttentionBlock) for b in tower.transformer.resblocks)
    ):
        text = model if isinstance(model, CLIP) else getattr(model, "text", None)
        raise ConfigError(
            "Deep text prompts and trained text blocks need a causal text tower with standard "
            "blocks and end-token pooling, as in CLIP; got an unsupported "
            f"{type(text).__name__}. Use tiny-vit or ViT-B-16/openai."
        )
    return tower
