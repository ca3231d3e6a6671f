"""Search an index of images by a sentence, with the image vectors that the index stores."""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from surelabel.errors import ConfigError, InputError
from surelabel.methods import (
    Method,
    ScoresPairs,
    pair_variances_with_any_method,
    score_pairs_with_any_method,
)
from surelabel.recognizer.index_calibration import restore_index_calibration
from surelabel.recognizer.model_resolution import PATH_PREFIXES, resolve_model
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Features
from surelabel.retrieval import Index, ShardedIndex
from surelabel.retrieval.index_search import check_merged_hit_paths


@dataclass(frozen=True)
class SentenceHit:
    """One image in the result of a search by a sentence.

    Attributes:
        path: Absolute path of the image.
        similarity: Similarity of the image and the sentence, which only ranks images of one search:
            the score of a method that scores pairs of images and sentences; otherwise, the cosine
            of the image vector and the sentence vector, in [-1, 1].
        uncertainty: Variance of the similarity, above 0; lower means a more reliable match. If the
            method does not estimate it, the value is None.
    """

    path: str
    similarity: float
    uncertainty: float | None


def recognizer_of_index(
    index: Index, model: str | None = None, *, device: str = "cpu"
) -> Recognizer:
    """Load the recognizer whose image vectors an index stores.

    Args:
        index: Index of images.
        model: Saved recognizer or name of an encoder. If None, the name that the index records is
            used.
        device: PyTorch device of the encoder.

    Raises:
        InputError: If the index records no recognizer and ``model`` is None, if the recorded folder
            does not exist, or if the recognizer is not that of the index.
        UnknownName, DataError: If the recognizer cannot be loaded.
    """
    recorded = index.recognizer
    labels = None if recorded is None else recorded.labels
    if model is None:
        if recorded is None:
            raise InputError(
                f"The search needs the recognizer of {index.folder}, which the index does not "
                "record. Give --model, or run `surelabel index` with --model once."
            )
        model = recorded.model
        if _is_missing_path(model):
            raise InputError(
                f"The recognizer of {index.folder} must be in {model}; the folder does not exist. "
                "Give its new folder with --model."
            )
    recognizer = resolve_model(model, labels, default_names=index.names, device=device)
    restore_index_calibration(index, recognizer)
    check_recognizer_of_index(index, recognizer)
    return recognizer


def check_recognizer_of_index(index: Index, recognizer: Recognizer) -> None:
    """Check that the image vectors of an index come from a recognizer.

    Raises:
        InputError: If the fingerprints differ.
    """
    if index.model != recognizer.fingerprint:
        raise InputError(
            f"The index {index.folder} contains image vectors of the recognizer {index.model}; got "
            f"the recognizer {recognizer.fingerprint}. Give the recognizer of the index with "
            "--model, or build the index again."
        )


def describe_similarity(recognizer: Recognizer) -> str:
    """Return a sentence on the scale of the similarities of a search by a sentence.

    Args:
        recognizer: Recognizer of the search.
    """
    scale = (
        f"the score of {recognizer.run.method.name}"
        if isinstance(recognizer.method, ScoresPairs)
        else "a cosine between -1 and 1"
    )
    return (
        f"The similarity is {scale}. It ranks the images of this search; it is not a probability."
    )


def search_by_sentence(
    index: Index, recognizer: Recognizer, text: str, k: int = 20
) -> list[SentenceHit]:
    """Return the ``k`` images of an index that are most similar to a sentence.

    All images are scored, in blocks that are read from disk one at a time. A method that scores
    pairs of images and sentences computes the similarities; for other methods, they are the cosines
    of the encoder.

    Args:
        index: Index with image vectors.
        recognizer: Recognizer of the index; see :func:`recognizer_of_index`.
        text: Sentence, such as ``two ducks on a pond``. If it is longer than the context of the
            text tower, it is cut, with a warning.
        k: Number of images, >= 1. If the index has fewer images, all images are returned.

    Returns:
        Images, sorted by decreasing similarity. Images of equal similarity are sorted by row.

    Raises:
        InputError: If ``text`` is empty, ``k`` is not a whole number of at least 1, the index has
            no image vectors, or the recognizer is not that of the index.
        ConfigError: If the encoder has no text tower, or the method needs other inputs than image
            vectors and sentence vectors.
        DataError: If the image vectors are damaged.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import surelabel as sl
        >>> images = sl.collection("scenes-80", split="test").take(range(8))
        >>> recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion"])
        >>> with TemporaryDirectory() as folder:
        ...     index = sl.Index.create(folder, recognizer.predict(images))
        ...     hits = search_by_sentence(index, recognizer, "two ducks on a pond", k=3)
        >>> len(hits), hits[0].similarity >= hits[1].similarity, hits[0].uncertainty
        (3, True, None)
    """
    if not text.strip():
        raise InputError("text must be a sentence; got an empty text. Give at least one word.")
    if not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k, the number of images, must be a whole number of at least 1; got {k}.")
    check_recognizer_of_index(index, recognizer)
    if not len(index):
        return []
    _check_sentence_search_inputs(index, recognizer)
    n_cut_tokens = recognizer.encoder.count_cut_tokens([text])[0]
    if n_cut_tokens:
        warnings.warn(
            f"The sentence is longer than the context of {recognizer.encoder.name}; the last "
            f"{n_cut_tokens} tokens are cut. Shorten the sentence.",
            stacklevel=2,
        )
    sentence = Features(recognizer.encoder.encode_sentences([text]).float())
    best = _best_rows(index.image_vectors(), recognizer.method, sentence, k)
    variances = _variances_of_best_rows(recognizer.method, best, sentence)
    paths = index.paths_of_rows(best.rows.tolist())
    return list(map(SentenceHit, paths, best.similarities.tolist(), variances))


def search_shards_by_sentence(
    sharded: ShardedIndex, recognizer: Recognizer, text: str, k: int = 20
) -> list[SentenceHit]:
    """Return the ``k`` images of several indexes that are most similar to a sentence.

    Images of equal similarity are sorted by index, then by row, as in one index.

    Args:
        sharded: Indexes with image vectors.
        recognizer: Recognizer of the indexes; see :func:`recognizer_of_index`.
        text: Sentence, such as ``two ducks on a pond``.
        k: Number of images, >= 1.

    Raises:
        InputError, ConfigError: As for :func:`search_by_sentence`.
        DataError: If image vectors are damaged, or an image of the result is in two indexes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("once")  # not for each index
        hits = [
            hit
            for index in sharded.indexes
            for hit in search_by_sentence(index, recognizer, text, k=k)
        ]
    best = sorted(hits, key=lambda hit: -hit.similarity)[:k]
    check_merged_hit_paths([hit.path for hit in best])
    return best


def _is_missing_path(model: str) -> bool:
    """Return whether a recorded model is an absolute path that does not exist."""
    prefix, colon, path = model.partition(":")
    path = path if colon and prefix in PATH_PREFIXES else model
    return os.path.isabs(path) and not Path(path).exists()


def _check_sentence_search_inputs(index: Index, recognizer: Recognizer) -> None:
    """Check that the vectors of index and encoder are what the similarity needs.

    Raises:
        InputError: If the index has no vectors, or vectors of another width.
        ConfigError: If the encoder has no text tower, or the method needs other inputs.
    """
    width, method, name = index.vector_width, recognizer.method, recognizer.run.method.name
    if width is None:
        raise InputError(
            f"A search by sentence needs image vectors; {index.folder} has none. Build the index "
            "again (`surelabel index`)."
        )
    if width != recognizer.encoder.width:
        raise InputError(
            f"The image vectors of {index.folder} must have the width of {recognizer.encoder.name},"
            f" {recognizer.encoder.width}; got {width}. Build the index again (`surelabel index`)."
        )
    if not isinstance(method, ScoresPairs):
        return
    if method.needs:
        raise ConfigError(
            f"A search by sentence scores the image vectors of the index; {name} also needs "
            f"{', '.join(method.needs)}. Fit {name} on image vectors only."
        )
    text_width = recognizer.run.method.settings.get("text_width")
    if text_width not in (None, recognizer.encoder.width):
        raise ConfigError(
            f"{name} was fitted on text vectors of width {text_width}; {recognizer.encoder.name} "
            f"encodes sentences as vectors of width {recognizer.encoder.width}. Fit {name} on "
            "captions of this encoder."
        )


@dataclass(frozen=True)
class _BestRows:
    """Rows with the highest similarities, in decreasing order."""

    similarities: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float16]


@torch.no_grad()
def _best_rows(
    blocks: Iterator[npt.NDArray[np.float16]], method: Method, sentence: Features, k: int
) -> _BestRows:
    """Return the ``k`` rows with the highest similarity; equal ones are sorted by row."""
    similarities, rows = np.empty(0, np.float32), np.empty(0, np.int64)
    vectors = np.empty((0, sentence.pooled.shape[1]), np.float16)
    start = 0
    for block in blocks:
        images = _image_features(block, sentence.pooled.device)
        scores = _sentence_similarities(method, images, sentence)
        similarities = np.concatenate([similarities, scores])
        rows = np.concatenate([rows, np.arange(start, start + len(block))])
        order = np.lexsort((rows, -similarities))[:k]
        is_earlier = order < len(vectors)
        kept = np.empty((len(order), vectors.shape[1]), np.float16)
        kept[is_earlier] = vectors[order[is_earlier]]
        kept[~is_earlier] = block[order[~is_earlier] - len(vectors)]
        similarities, rows, vectors = similarities[order], rows[order], kept
        start += len(block)
    return _BestRows(similarities, rows, vectors)


@torch.no_grad()
def _variances_of_best_rows(
    method: Method, best: _BestRows, sentence: Features
) -> Sequence[float | None]:
    """Return the variance of each similarity, or None if the method does not estimate it."""
    images = _image_features(best.vectors, sentence.pooled.device)
    variances = pair_variances_with_any_method(method, images, sentence)
    values: list[float] = [] if variances is None else variances[:, 0].tolist()
    return values or [None] * len(best.rows)


def _image_features(vectors: npt.NDArray[np.float16], device: torch.device) -> Features:
    """Return stored image vectors ``(n, d)`` as unit vectors in fp32."""
    pooled = torch.from_numpy(vectors.astype(np.float32)).to(device)
    return Features(F.normalize(pooled, dim=-1))


def _sentence_similarities(
    method: Method, images: Features, sentence: Features
) -> npt.NDArray[np.float32]:
    """Return the similarity of n images to one sentence, ``(n,)``."""
    scores = score_pairs_with_any_method(method, images, sentence)
    similarities: npt.NDArray[np.float32] = scores[:, 0].float().cpu().numpy()
    return similarities
