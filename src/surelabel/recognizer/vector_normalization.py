"""Return vectors and scores of precomputed inputs, and normalize them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.encoders import Encoder
from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.encoders.image_only.precomputed_scores import PrecomputedScores
from surelabel.encoders.image_only.vector_normalization import (
    UNIT_LENGTH,
    VectorNormalization,
    fit_vector_normalization,
)
from surelabel.errors import ConfigError, NotFitted
from surelabel.records import Features, LabelledFeatures, LabelledScores, PairFeatures


def precomputed_vectors(encoder: Encoder, source: LabelledFeatures) -> npt.NDArray[np.float32]:
    """Return precomputed vectors, or scores in the column order of the encoder, ``(n, d)``.

    Args:
        encoder: Encoder of the recognizer.
        source: Vectors or scores of n images.

    Raises:
        ConfigError: If the source contains scores, and the encoder is not ``scores:KIND``. Also if
            the kind or the columns of the scores are not those of the encoder.
        InputError: If the encoder is ``scores:KIND``, and the vectors are not scores of this kind.
    """
    if isinstance(encoder, PrecomputedScores):
        return encoder.vectors(source)
    if isinstance(source, LabelledScores):
        raise ConfigError(
            "Scores need a recognizer that was calibrated or fitted on scores; got the encoder "
            f"{encoder.name}. Run `surelabel calibrate scores:FILE DATASET --as {source.kind} "
            "--out FOLDER` and give FOLDER as the model (in Python Recognizer.from_scores)."
        )
    return source.features


def encoder_of_method(encoder: Encoder, learns_from: str) -> Encoder:
    """Return the encoder, without a normalization of scores if the method is not fitted.

    Args:
        encoder: Encoder of the recognizer.
        learns_from: Data that the method is fitted on; see ``Method``.
    """
    if isinstance(encoder, PrecomputedScores) and learns_from == "nothing":
        return encoder.with_normalization(None)
    return encoder


def encoder_with_fitted_normalization(encoder: Encoder, source: Any) -> Encoder:
    """Return the encoder of a fit, with the normalization of its training vectors.

    Args:
        encoder: Encoder of the recognizer. Only ``features:WIDTH`` and ``scores:KIND`` are changed,
            because the vectors of other encoders have unit length.
        source: Training data of any kind. Only vectors are used.

    Raises:
        InputError: If the vectors must be standardized, and there is only one vector.
        ConfigError: If the kind or the columns of scores are not those of the encoder.
    """
    if not isinstance(encoder, PrecomputedFeatures):
        return encoder
    if isinstance(source, PairFeatures) and len(source):
        return encoder.fit_normalization(source.image_vectors, source.text_vectors)
    if isinstance(source, LabelledFeatures) and len(source):
        return encoder.fit_normalization(precomputed_vectors(encoder, source))
    return encoder  # other data and empty data raise an error later


def image_vector_normalization(encoder: Encoder) -> VectorNormalization:
    """Return the normalization of precomputed image vectors for an encoder.

    Raises:
        NotFitted: If the encoder is ``features:WIDTH``, and is not fitted yet.
    """
    if not isinstance(encoder, PrecomputedFeatures):
        return UNIT_LENGTH
    return _fitted(encoder, encoder.images)


def text_vector_normalization(encoder: Encoder) -> VectorNormalization:
    """Return the normalization of precomputed vectors of captions for an encoder.

    Raises:
        NotFitted: If the encoder is ``features:WIDTH``, and it was not fitted on captions.
    """
    if not isinstance(encoder, PrecomputedFeatures):
        return UNIT_LENGTH
    return _fitted(encoder, encoder.texts)


def standardize_fold_vectors(
    encoder: Encoder, train: Features, test: Features
) -> tuple[Features, Features]:
    """Return the features of a fold, normalized by the statistics of its training images only.

    Vectors that were standardized by all images are standardized again. The result equals that of
    the original vectors. If the vectors are not standardized, they are returned unchanged.

    Args:
        encoder: Encoder of the recognizer, with the normalization of all images.
        train: Features of the training images of the fold.
        test: Features of the other images.

    Raises:
        InputError: If the vectors are standardized, and there is only one training image.
    """
    if not isinstance(encoder, PrecomputedFeatures) or not encoder.is_standardized:
        return train, test
    normalization = fit_vector_normalization(train.pooled.numpy(), "standardize")
    return (
        Features(normalization.normalize(train.pooled.numpy())),
        Features(normalization.normalize(test.pooled.numpy())),
    )


def vector_normalization_description(encoder: Encoder) -> str | None:
    """Return a description of the normalization of ``features:WIDTH``, or None for others."""
    return encoder.normalization_description if isinstance(encoder, PrecomputedFeatures) else None


def row_noun(encoder: Encoder) -> str:
    """Return the noun of the inputs of an encoder in messages: ``image``, or ``row`` of vectors.

    Rows of scores have the names of images.
    """
    if isinstance(encoder, PrecomputedScores):
        return "image"
    return "row" if isinstance(encoder, PrecomputedFeatures) else "image"


def _fitted(encoder: Encoder, normalization: VectorNormalization | None) -> VectorNormalization:
    if normalization is None:
        raise NotFitted(
            f"{encoder.name} must be fitted first, because the encoder normalizes vectors with "
            "statistics of the training vectors. Call fit first."
        )
    return normalization
