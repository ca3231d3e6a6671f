"""Patch vectors of dual encoders of transformers in the joint space of images and texts."""

from typing import Any

from torch import Tensor

from surelabel.errors import ConfigError

PatchVectors = tuple[Tensor, Tensor, tuple[int, int]]  # pooled (n, d), patches (n, p, d), grid


def transformers_patch_vectors(model: Any, pixels: Tensor, name: str) -> PatchVectors:
    """Return pooled vectors, patch vectors and the patch grid, without normalization.

    - CLIP and MetaCLIP 2: the final norm and the projection of the class token are applied to each
      patch token of the last layer.
    - SigLIP: the attention pooling is applied to each patch token separately.
    - TIPSv2: the patch tokens of the last layer are in the joint space.

    Args:
        model: Model of transformers.
        pixels: Preprocessed images, ``(n, 3, h, w)``.
        name: Model name of the encoder, for the error message.

    Raises:
        ConfigError: If the patch grids of the images differ, as in SigLIP 2 NaFlex.

    Source:
        Cao et al., TIPSv2, arXiv:2604.12012: patch tokens that are aligned with texts.
    """
    tower, kind = model.vision_model, model.config.model_type
    if kind == "siglip2":
        raise ConfigError(
            f"{name} computes no patch vectors, because the patch grids of images with different "
            "aspect ratios differ. Use a method that needs only the pooled vector, or another "
            "encoder."
        )
    outputs = tower(pixel_values=pixels)
    side = tower.config.patch_size
    rows, columns = (length // side for length in pixels.shape[-2:])
    tokens = outputs.last_hidden_state[:, -rows * columns :]
    pooled = outputs.pooler_output
    if kind == "siglip":
        patches = tower.head(tokens.flatten(0, 1)[:, None]).unflatten(0, (len(pixels), -1))
    elif kind == "tipsv2":
        patches = tokens
    else:
        pooled = model.visual_projection(pooled)
        patches = model.visual_projection(tower.post_layernorm(tokens))
    return pooled, patches, (rows, columns)
