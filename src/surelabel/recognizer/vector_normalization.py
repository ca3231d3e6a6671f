"""Normalization of precomputed vectors by the encoder of a recognizer."""

from typing import Any

from surelabel.encoders import Encoder
from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.encoders.image_only.vector_normalization import (
    UNIT_LENGTH,
    VectorNormalization,
    fit_vector_normalization,
)
from surelabel.errors import NotFitted
from surelabel.records import Features, LabelledFeatures, PairFeatures


def encoder_with_fitted_normalization(encoder: Encoder, source: Any) -> Encoder:
    """Return the encoder of a fit, with the normalization of its training vectors.

    Args:
        encoder: Encoder of the recognizer. If it is not ``features:WIDTH``, it is returned
            unchanged, because the vectors of other encoders have unit length.
        source: Training data of any kind. Only vectors are used.

    Raises:
        InputError: If the vectors are to be standardized, and there is only one vector.
    """
    if not isinstance(encoder, PrecomputedFeatures):
        return encoder
    if isinstance(source, PairFeatures) and len(source):
        return encoder.fit_normalization(source.image_vectors, source.text_vectors)
    if isinstance(source, LabelledFeatures) and len(source):
        return encoder.fit_normalization(source.features)
    return encoder  # other data and empty data raise an error later


def image_vector_normalization(encoder: Encoder) -> VectorNormalization:
    """Return the normalization of precomputed image vectors for an encoder.

    Raises:
        NotFitted: If the encoder is ``features:WIDTH``, and it is not fitted yet.
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

    Standardized vectors are standardized again: the result is that of the original vectors. The
    features of other encoders are returned unchanged.

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
    """Return a description of the normalization of ``features:WIDTH``; for others, None."""
    return encoder.normalization_description if isinstance(encoder, PrecomputedFeatures) else None


def row_noun(encoder: Encoder) -> str:
    """Return the noun of the inputs of an encoder in messages: ``image``, or ``row`` of vectors."""
    return "row" if isinstance(encoder, PrecomputedFeatures) else "image"


def _fitted(encoder: Encoder, normalization: VectorNormalization | None) -> VectorNormalization:
    if normalization is None:
        raise NotFitted(
            f"{encoder.name} must be fitted on vectors first, because it normalizes vectors by "
            "statistics of the training vectors; it is not fitted yet. Call fit first."
        )
    return normalization
