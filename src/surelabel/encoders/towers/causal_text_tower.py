"""Parts of a causal text tower, so that its layers can be run one by one."""

from dataclasses import dataclass
from typing import Any

from open_clip.model import CLIP
from open_clip.transformer import ResidualAttentionBlock, TextTransformer
from torch import Tensor, nn

from surelabel.errors import ConfigError


@dataclass(frozen=True)
class CausalTextTower:
    """Parts of a text tower that has causal attention and pools the end token.

    In shapes, ``s`` is the number of sentences, and ``k`` is the number of tokens of a sentence.
    ``w`` is the width of the tower, and ``d`` is the dimension of the joint space.

    Attributes:
        token_embedding: Embedding layer of the token ids.
        positional_embedding: Position embeddings, which are added to the token embeddings.
        transformer: Transformer whose blocks have standard multi-head self-attention.
        ln_final: Layer norm after the last block.
        projection: Projection to the joint space. If None, the tower has no projection.
        end_token_id: Id of the end token. If None, the end token of a sentence is the token with
            the largest id.
    """

    token_embedding: Any
    positional_embedding: Tensor
    transformer: Any
    ln_final: Any
    projection: Any
    end_token_id: int | None

    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """Return token embeddings plus position embeddings, ``(s, k, w)``.

        Args:
            tokens: Token ids, ``(s, k)``.
        """
        dtype = self.transformer.get_cast_dtype()
        positions = self.positional_embedding[: tokens.shape[1]].to(dtype)
        embedded: Tensor = self.token_embedding(tokens).to(dtype) + positions
        return embedded

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

    def project(self, last: Tensor) -> Tensor:
        """Project outputs at end tokens to the joint space, ``(s, d)``, without normalization.

        Args:
            last: Outputs of the last block at the end tokens, ``(s, w)``.
        """
        joint: Tensor = self.ln_final(last)
        if isinstance(self.projection, nn.Linear):
            joint = self.projection(joint)
        elif self.projection is not None:
            joint = joint @ self.projection
        return joint


def causal_text_tower(model: Any) -> CausalTextTower:
    """Return the parts of the text tower of an open_clip model.

    Raises:
        ConfigError: If the text tower is not causal, does not pool the end token, or is not a text
            tower of open_clip with standard transformer blocks.
    """
    text: Any = model if isinstance(model, CLIP) else getattr(model, "text", None)
    prefix = "text_" if isinstance(text, CLIP) else ""
    pool = getattr(text, f"{prefix}pool_type", None)
    has_class_token = getattr(text, "cls_emb", None) is not None
    if (
        pool not in ("argmax", "eos")
        or has_class_token
        or text.attn_mask is None
        or not _has_plain_causal_text_blocks(text)
    ):
        raise ConfigError(
            "Deep text prompts need a causal text tower of standard blocks that pools the end "
            f"token, as in CLIP; got {type(text).__name__} of another kind. Use tiny-vit or "
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


def _has_plain_causal_text_blocks(text: Any) -> bool:
    return isinstance(text, CLIP | TextTransformer) and all(
        isinstance(block, ResidualAttentionBlock) for block in text.transformer.resblocks
    )
