"""Project image vectors and text vectors linearly to one space."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders import Encoder, prompt_templates
from surelabel.errors import ConfigError
from surelabel.methods.text_scoring.text_scorer import encode_synonyms_for_text_scorer


class PairProjection(nn.Module):
    """Project image vectors and text vectors linearly to one space, and normalize them.

    If all widths are equal, both projections start as the identity, so that the cosines before
    training are those of the encoder. Otherwise, both projections start as random orthogonal
    matrices.

    Args:
        image_width: Width of the image vectors.
        text_width: Width of the text vectors. If None, the width of the image vectors is used.
        width: Width of the common space. If None, the width of the image vectors is used.

    Raises:
        ConfigError: If ``text_width`` or ``width`` is not an integer of 1 or more.
    """

    def __init__(self, image_width: int, text_width: int | None = None, width: int | None = None):
        super().__init__()
        text_width = image_width if text_width is None else text_width
        width = image_width if width is None else width
        for name, value in (("text_width", text_width), ("width", width)):
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1; got {value!r}.")
        self.images = nn.Linear(image_width, width, bias=False)
        self.texts = nn.Linear(text_width, width, bias=False)
        for layer in (self.images, self.texts):
            if image_width == text_width == width:
                nn.init.eye_(layer.weight)
            else:
                nn.init.orthogonal_(layer.weight)

    def forward(self, images: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Return unit vectors of n images and of s texts, ``(n, d)`` and ``(s, d)``.

        Args:
            images: Image vectors, ``(n, image_width)``.
            texts: Text vectors, ``(s, text_width)``.
        """
        return F.normalize(self.images(images), dim=-1), F.normalize(self.texts(texts), dim=-1)


def encode_label_sentences(
    encoder: Encoder, names: Sequence[str], templates: str | Sequence[str], text_width: int | None
) -> Tensor:
    """Return the unit vectors of labels, to score labels like sentences, ``(c, d)``.

    Args:
        encoder: Encoder of the texts, which is not used if there are no labels.
        names: Labels, length c, which may be 0. Synonyms of one label are separated by ``|``.
        templates: Prompt templates; see ``TextScorer``.
        text_width: Width of the text vectors of the pairs. If None, the width of the encoder is
            used.

    Raises:
        ConfigError: If there are labels, and the encoder has no text tower or another width than
            ``text_width``.
    """
    width = encoder.width if text_width is None else text_width
    if not names:
        return torch.empty(0, width, device=encoder.device)
    texts = encode_synonyms_for_text_scorer(encoder, names, prompt_templates(templates))
    if texts.shape[1] != width:
        raise ConfigError(
            f"Text vectors of labels must have the width of the caption vectors, {width}; got "
            f"{texts.shape[1]} from {encoder.name}. Remove text_width, or fit without labels."
        )
    return texts
