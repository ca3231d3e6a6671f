"""A text tower that reads from left to right, in parts."""

from dataclasses import dataclass
from typing import Any

from open_clip.model import CLIP
from open_clip.transformer import ResidualAttentionBlock, TextTransformer
from torch import Tensor, nn

from surelabel.errors import ConfigError


@dataclass(frozen=True)
class CausalTower:
    """The parts of a causal text tower that is read at its end token.

    Attributes:
        token_embedding: Of token ids.
        positional_embedding: What is added to each place.
        transformer: Its plain blocks.
        ln_final: The closing norm.
        projection: Into the joint space; None for none.
        end: Id of the end token; None where it is the largest of all.
    """

    token_embedding: Any
    positional_embedding: Tensor
    transformer: Any
    ln_final: Any
    projection: Any
    end: int | None

    def embedded(self, tokens: Tensor) -> Tensor:
        """Token ids ``(s, k)`` with their positions, ``(s, k, w)``."""
        kind = self.transformer.get_cast_dtype()
        positions = self.positional_embedding[: tokens.shape[1]].to(kind)
        embedded: Tensor = self.token_embedding(tokens).to(kind) + positions
        return embedded

    def ends(self, tokens: Tensor) -> Tensor:
        """Where the end token stands, ``(s,)``: the first of its id, or the largest id of all."""
        found = tokens if self.end is None else (tokens == self.end).int()
        places: Tensor = found.argmax(dim=-1)
        return places

    def joint(self, last: Tensor) -> Tensor:
        """Last tokens ``(s, w)`` in the joint space ``(s, d)``, not of unit length."""
        joint: Tensor = self.ln_final(last)
        if isinstance(self.projection, nn.Linear):
            joint = self.projection(joint)
        elif self.projection is not None:
            joint = joint @ self.projection
        return joint


def causal_tower(model: Any) -> CausalTower:
    """The text tower of an open_clip model.

    Raises:
        ConfigError: it is not causal, is not read at its end token, or is none of open_clip's own.
    """
    text: Any = model if isinstance(model, CLIP) else getattr(model, "text", None)
    prefix = "text_" if isinstance(text, CLIP) else ""
    pool = getattr(text, f"{prefix}pool_type", None)
    own_class = getattr(text, "cls_emb", None) is not None
    if pool not in ("argmax", "eos") or own_class or text.attn_mask is None or not _plain(text):
        raise ConfigError(
            "Prompts inside a text tower need one that reads from left to right and is read at "
            f"its end token, of plain blocks, as CLIP's. This {type(text).__name__} is of another "
            "kind; take tiny-vit, or ViT-B-16/openai."
        )
    return CausalTower(
        text.token_embedding,
        text.positional_embedding,
        text.transformer,
        text.ln_final,
        text.text_projection,
        getattr(text, f"{prefix}eos_id") if pool == "eos" else None,
    )


def _plain(text: Any) -> bool:
    return isinstance(text, CLIP | TextTransformer) and all(
        isinstance(block, ResidualAttentionBlock) for block in text.transformer.resblocks
    )
