"""Score image vectors against the text vectors of labels."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders import Encoder, prompt_templates, reference_names
from surelabel.errors import ConfigError
from surelabel.label_aliases import split_label_aliases
from surelabel.methods.text_scoring.score_domains import (
    INDEPENDENT_SCORE_DOMAINS,
    SCORE_DOMAINS,
)
from surelabel.views.relative_scores import MIN_LABELS

BACKGROUNDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "usual": (
        *("ground", "grass", "soil", "sand", "rock", "road", "floor", "carpet", "wall", "ceiling"),
        *("window", "curtain", "building", "fence", "tree", "forest", "leaves", "mountain", "hill"),
        *("river", "lake", "sea", "sky", "cloud", "shadow"),
    ),
}


class TextScorer(nn.Module):
    """Score image vectors by scaled cosines with label texts, compared in a score domain.

        score = domain(tau · cos(x, names), tau · cos(x, background), tau · cos(x, reference))

    domain is the score domain, x an image vector, and tau the scale. The cosines are those with the
    texts of the labels, of the background words and of the reference list. All methods that compute
    text scores without gradient-based training have these settings.

    On the validation images of scenes-80, with one encoder pass, each default has the highest mAP,
    or an mAP within 0.2 of the highest. With tiny-vit and tiny-rn, the mAP is 51.4 and 51.1 for
    ``domain=reference``, and also for ``softmax`` (51.3 at half the scale). The mAP is 49.9 and
    50.0 for ``standardized``, and 49.8 and 49.8 for ``centred``. With ``domain=softmax``,
    ``templates=ensemble`` lowers the mAP by 2.9 and 1.6, and background words do not improve the
    mAP. On photographs (VOC2012 train, RN50x64), ``domain=softmax`` has 85.3 mAP at the scale of
    the encoder and 87.0 mAP at a quarter of this scale.

    Args:
        encoder: Encoder of the texts; ``encoder.scale`` is the default of ``scale``.
        names: Labels. Synonyms of one label are separated by ``|``, as in ``sofa|couch``.
        templates: Prompt templates: ``one``, ``ensemble``, a sentence with ``{}``, a list of such
            sentences, or the path of a text file with one sentence per line.
        domain: Score domain, an entry of ``SCORE_DOMAINS``. With ``reference`` and ``cosine``, the
            score of a label does not depend on the other labels. With all other domains, labels
            are compared with each other.
        background: Background words, which are compared with the labels and are never predicted:
            ``none``, ``usual``, or a list of words. Words that are also labels or synonyms of
            labels are ignored; case is not considered. The domain ``cosine`` accepts no background
            words.
        scale: Factor of the cosines (tau), the inverse of a temperature, > 0. If None, the scale of
            the encoder is used.

    Raises:
        ConfigError: If a setting is unknown or out of range, the encoder has no texts, or there are
            background words and the domain is ``cosine``. The error is also raised if there are
            fewer than three labels and the domain compares labels with each other.
        DataError: If a file of templates is not text or is empty.

    Example:
        >>> from surelabel.encoders import load_encoder
        >>> text_scorer = TextScorer(load_encoder("tiny-vit"), ["lion", "sofa|couch"])
        >>> text_scorer(torch.zeros(5, 9, 128)).shape
        torch.Size([5, 9, 2])
    """

    texts: Tensor
    background: Tensor
    reference: Tensor

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "reference",
        background: str | Sequence[str] = "none",
        scale: float | None = None,
    ):
        super().__init__()
        if domain not in SCORE_DOMAINS:
            raise ConfigError(f"domain must be one of {', '.join(SCORE_DOMAINS)}; got {domain!r}.")
        if scale is not None and not (isinstance(scale, int | float) and 0 < scale < math.inf):
            raise ConfigError(f"scale must be a finite number above 0; got {scale!r}.")
        words = text_scorer_background_words(background)
        if words and domain == "cosine":
            raise ConfigError(
                f"domain=cosine does not use background words; got {len(words)} background words. "
                "Remove background, or set domain=reference."
            )
        if domain not in INDEPENDENT_SCORE_DOMAINS and len(names) < MIN_LABELS:
            raise ConfigError(
                f"domain={domain} compares labels with each other and needs {MIN_LABELS} or more; "
                f"got {len(names)}. Add labels, or set domain=reference."
            )
        sentences = prompt_templates(templates)
        self.domain, self.scale = domain, scale or encoder.scale
        self.register_buffer(
            "texts", encode_synonyms_for_text_scorer(encoder, names, sentences), persistent=False
        )
        no_texts = self.texts[:0]
        reference_texts = (
            no_texts if domain == "cosine" else encoder.encode_labels(reference_names(), sentences)
        )
        background_texts = encoder.encode_labels(words, sentences) if words else no_texts
        self.register_buffer("background", background_texts)
        self.register_buffer("reference", reference_texts)
        mask = _text_scorer_background_mask(words, names)
        self._background_rows = mask.nonzero().flatten().tolist()

    def forward(self, vectors: Tensor, texts: Tensor | None = None) -> Tensor:
        """Return the scores ``(…, c)`` of unit vectors ``(…, d)``.

        Args:
            vectors: Unit vectors of images or regions, ``(…, d)``.
            texts: Unit vectors of the labels, ``(c, d)``. If None, those of the frozen text tower
                are used.
        """
        labels = self.texts if texts is None else texts
        text_groups = (labels, self.background_texts, self.reference)
        similarities = (self.scale * vectors @ texts.T for texts in text_groups)
        return SCORE_DOMAINS[self.domain](*similarities)

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether added labels change the scores of other labels.

        The value is also True if there are background words, because a background word that becomes
        a label is no longer a background word.
        """
        return self.domain not in INDEPENDENT_SCORE_DOMAINS or len(self.background) > 0

    @property
    def background_texts(self) -> Tensor:
        """Return the unit vectors of the background words that are not labels, ``(b, d)``."""
        return self.background[self._background_rows]


def encode_synonyms_for_text_scorer(
    encoder: Encoder, names: Sequence[str], templates: Sequence[str]
) -> Tensor:
    """Return one unit vector per label, the normalized mean over its synonyms, ``(c, d)``.

    Args:
        encoder: Encoder of the texts.
        names: Labels. Synonyms of one label are separated by ``|``, as in ``sofa|couch``.
        templates: Prompt templates, each with ``{}``.
    """
    synonyms = [split_label_aliases(name) for name in names]
    vectors = encoder.encode_labels([synonym for group in synonyms for synonym in group], templates)
    groups = vectors.split([len(group) for group in synonyms])
    return F.normalize(torch.stack([group.mean(0) for group in groups]), dim=-1)


def text_scorer_background_words(background: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of an entry of ``BACKGROUNDS``, or the given words without duplicates.

    Spaces around given words are removed.

    Raises:
        ConfigError: If the entry is unknown, or a word is empty.
    """
    if isinstance(background, str):
        if background not in BACKGROUNDS:
            raise ConfigError(
                f"background must be one of {', '.join(BACKGROUNDS)}, or a list of words; "
                f"got {background!r}."
            )
        return BACKGROUNDS[background]
    if not all(isinstance(word, str) and word.strip() for word in background):
        raise ConfigError(
            f"background must be a list of non-empty strings; got {list(background)}."
        )
    return tuple(dict.fromkeys(word.strip() for word in background))


def text_scorer_background_without_labels(
    background: str | Sequence[str], names: Sequence[str]
) -> list[str]:
    """Return the background words that are neither labels nor synonyms of labels.

    Case is not considered.

    Raises:
        ConfigError: If the entry is unknown, or a word is empty.

    Example:
        >>> text_scorer_background_without_labels(["sky", "Ground"], ["sea|sky"])
        ['Ground']
    """
    words = text_scorer_background_words(background)
    mask = _text_scorer_background_mask(words, names)
    return [word for word, is_background in zip(words, mask, strict=True) if is_background]


def _text_scorer_background_mask(words: Sequence[str], names: Sequence[str]) -> Tensor:
    """Return a mask of the words that are neither labels nor synonyms of labels, ``(b,)``."""
    synonyms = {synonym.casefold() for name in names for synonym in split_label_aliases(name)}
    return torch.tensor([word.casefold() not in synonyms for word in words], dtype=torch.bool)
