"""Measure how well score and uncertainty separate false negatives from true negatives."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import ColumnIndices, Flags
from surelabel.decisions import error_auroc
from surelabel.retrieval.caption_retrieval.relevant_items import RelevantItems

MAX_TRUE_NEGATIVES = 1_000_000  # if there are more true negatives, they are sampled


def false_negative_auroc(
    scores: npt.NDArray[np.floating[Any]],
    captions_of_images: RelevantItems,
    *,
    variances: npt.NDArray[np.floating[Any]] | None = None,
    threshold: float = 1.0,
    seed: int = 0,
) -> Mapping[str, float]:
    """Return the AUROC of false negatives against true negatives.

    False negatives and true negatives are pairs of an image and a caption of another image. A false
    negative has a grade of at least the threshold, and a true negative has grade 0. Pairs with a
    grade between 0 and the threshold are left out.

    Args:
        scores: Finite scores of n images and s captions, ``(n, s)``.
        captions_of_images: Captions of each image with a grade above 0.
        variances: Uncertainty of each pair, ``(n, s)``, or None.
        threshold: Lowest grade of a false negative, in (0, 1].
        seed: Seed of the sample of true negatives, of which at most a million are compared.

    Returns:
        AUROC of each quantity, which is the probability that the value is higher for a false
        negative than for a true negative. The quantities are ``score``, ``margin`` (score minus the
        highest score of the image) and, with ``variances``, ``uncertainty``. A value below 0.5
        means that the quantity is lower for false negatives. The value is NaN if there is no false
        negative or no true negative.

    Raises:
        InputError: If a score or an uncertainty of a compared pair is not finite.
    """
    n_captions = scores.shape[1]
    image_of_item = np.repeat(
        np.arange(len(captions_of_images)), np.diff(captions_of_images.offsets)
    )
    listed = image_of_item * n_captions + captions_of_images.items
    is_false = ~captions_of_images.is_own & (captions_of_images.grades >= threshold)
    false_negatives = listed[is_false]
    true_negatives = _sample_true_negatives(scores.size, listed, seed)
    pairs = np.concatenate([false_negatives, true_negatives])
    is_false_negative: Flags = np.arange(len(pairs)) < len(false_negatives)
    rows, columns = np.divmod(pairs, n_captions)
    pair_scores = scores[rows, columns].astype(np.float64)
    values = {"score": pair_scores, "margin": pair_scores - scores.max(axis=1)[rows]}
    if variances is not None:
        values["uncertainty"] = variances[rows, columns].astype(np.float64)
    return {name: error_auroc(value, is_false_negative) for name, value in values.items()}


def _sample_true_negatives(n_pairs: int, listed: ColumnIndices, seed: int) -> ColumnIndices:
    """Return flat indices of pairs that are not listed, or of a sample of at most a million."""
    if n_pairs <= MAX_TRUE_NEGATIVES:
        is_listed = np.zeros(n_pairs, bool)
        is_listed[listed] = True
        return np.flatnonzero(~is_listed)
    sample = np.unique(np.random.default_rng(seed).integers(n_pairs, size=MAX_TRUE_NEGATIVES))
    return np.setdiff1d(sample, listed, assume_unique=True)
