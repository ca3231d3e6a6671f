"""Parts of a causal text tower, for running its layers one by one."""

from dataclasses import dataclass
from typing import Any

from open_clip.model import CLIP
from open_clip.transformer import ResidualAttentionBlock, TextTransformer
from torch import Tensor, nn

from surelabel.errors import ConfigError


@dataclass(frozen=True)
class CausalTextTower:
    """The parts of a text tower with causal attention whose output is the end token.

    Attributes:
        token_embedding: Embedding of token ids.
        positional_embedding: Position embeddings, added to those of the tokens.
        transformer: Transformer of plain blocks.
        ln_final: Final layer norm.
        projection: Projection to the joint space; None if there is none.
        end_token_id: Id of the end token; None if it is the largest id of a sentence.
    """

    token_embedding: Any
    positional_embedding: Tensor
    transformer: Any
    ln_final: Any
    projection: Any
    end_token_id: int | None

    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """Return embeddings of token ids ``(s, k)`` plus position embeddings, ``(s, k, w)``."""
        dtype = self.transformer.get_cast_dtype()
        positions = self.positional_embedding[: tokens.shape[1]].to(dtype)
        embedded: Tensor = self.token_embedding(tokens).to(dtype) + positions
        return embedded

    def end_positions(self, tokens: Tensor) -> Tensor:
        """Return the position of the end token in token ids ``(s, k)``, ``(s,)``.

        It is the first token with the id ``end_token_id``, or with the largest id.
        """
        is_end = tokens if self.end_token_id is None else (tokens == self.end_token_id).int()
        positions: Tensor = is_end.argmax(dim=-1)
        return positions

    def project(self, last: Tensor) -> Tensor:
        """Project end tokens ``(s, w)`` to the joint space ``(s, d)``, without normalization."""
        joint: Tensor = self.ln_final(last)
        if isinstance(self.projection, nn.Linear):
            joint = self.projection(joint)
        elif self.projection is not None:
            joint = joint @ self.projection
        return joint


def causal_text_tower(model: Any) -> CausalTextTower:
    """Return the parts of the text tower of an open_clip model.

    Raises:
        ConfigError: If the tower is not causal, does not pool the end token, or is not a text
            tower of open_clip itself.
    """
    text: Any = model if isinstance(model, CLIP) else getattr(model, "text", None)
    prefix = "text_" if isinstance(text, CLIP) else ""
    pool = getattr(text, f"{prefix}pool_type", None)
    has_class_token = getattr(text, "cls_emb", None) is not None
    if (
        pool not in ("argmax", "eos")
        or has_class_token
        or text.attn_mask is None
        or not _has_plain_blocks(text)
    ):
        raise ConfigError(
            "Deep text prompts need a causal text tower of plain blocks that pools the end token, "
            f"as in CLIP; got {type(text).__name__} of another kind. Use tiny-vit or "
            "ViT-B-16/openai."
        )
    return CausalTextTower(
        text.token_embedding,
        text.positional_embedding,
        text.transformer,
        text.ln_final,
        text.text_projection,
        getattr(text, f"{prefix}eos_id") if pool == "eos" else None,
    )


def _has_plain_blocks(text: Any) -> bool:
    return isinstance(text, CLIP | TextTransformer) and all(
        isinstance(block, ResidualAttentionBlock) for block in text.transformer.resblocks
    )
