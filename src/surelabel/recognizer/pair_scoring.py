"""Score all pairs of images and captions with a recognizer."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from surelabel.features import SentenceFeatures
from surelabel.methods import (
    Method,
    ScoresPairs,
    pair_variances_with_any_method,
    score_pairs_with_any_method,
)
from surelabel.progress import Progress
from surelabel.recognizer.pair_fitting import PairFittingData, PairSource, encode_pair_data
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Features
from surelabel.training import select_feature_batch_rows

IMAGES_PER_BLOCK = 256  # images that are scored together with all captions
Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PairScores:
    """Scores of all pairs of images and captions.

    Attributes:
        pairs: Images and captions of the scores, without images that cannot be read.
        scores: Score of each image with each caption, ``(n, s)``.
        variances: Variance of the latent similarity of each pair, ``(n, s)``, above 0. If the
            method does not estimate variances, the value is None.
    """

    pairs: PairSource
    scores: Matrix
    variances: Matrix | None


def score_pairs(
    recognizer: Recognizer, source: PairSource, *, progress: Progress | None = None
) -> PairScores:
    """Return the scores of all pairs of an image and a caption of a source.

    If the method of the recognizer scores only labels, such as ``zero_shot``, the scores are the
    cosines of the vectors of the encoder.

    Args:
        recognizer: Fitted recognizer.
        source: Images with captions, or precomputed vectors of both.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        NotFitted: If the method has to be fitted first.
        DataError: If no image can be read.
        ConfigError: If the encoder has no text tower, or the method needs tokens or patches, and
            ``source`` contains only vectors.
        InputError: If the width of the image vectors is not that of the encoder.
    """
    recognizer.check_fitted()
    method = recognizer.method
    data = encode_pair_data(
        source,
        method if isinstance(method, ScoresPairs) else None,
        recognizer.encoder,
        recognizer.cache,
        progress=progress,
    )
    scores, variances = score_pair_data(method, data)
    return PairScores(source.take(data.source_images), scores, variances)


def score_pair_data(method: Method, data: PairFittingData) -> tuple[Matrix, Matrix | None]:
    """Return scores and variances of all pairs of n images and s captions, ``(n, s)`` each.

    Args:
        method: Fitted method. If the method scores only labels, the scores are cosines, and there
            are no variances.
        data: Features of images and captions.
    """
    scores, variances = zip(*_score_blocks(method, data.images, data.texts), strict=True)
    columns = data.text_rows.numpy()
    return (
        np.concatenate(scores)[:, columns],
        None if variances[0] is None else np.concatenate(variances)[:, columns],
    )


@torch.no_grad()
def _score_blocks(
    method: Method, images: Features, texts: Features | SentenceFeatures
) -> Iterator[tuple[Matrix, Matrix | None]]:
    """Yield scores and variances of blocks of b images with all u texts, ``(b, u)`` each."""
    all_texts = select_feature_batch_rows(texts, torch.arange(len(texts.pooled)))
    for rows in torch.arange(len(images.pooled)).split(IMAGES_PER_BLOCK):
        block = select_feature_batch_rows(images, rows)
        scores = score_pairs_with_any_method(method, block, all_texts)
        variances = pair_variances_with_any_method(method, block, all_texts)
        yield scores.cpu().numpy(), None if variances is None else variances.cpu().numpy()
