"""Compute vectors of pairs of an image and a question."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.errors import DataError, InputError
from surelabel.features.cache import FeatureCache
from surelabel.features.image_features import encode_image_files
from surelabel.progress import Progress
from surelabel.records import LabelledFeatures, QuestionAnswers

QUESTIONS_PER_BLOCK = 256
MIN_LENGTH = 1e-6  # of a centred vector; shorter vectors contain rounding errors only


def encode_questions(
    encoder: Encoder,
    data: QuestionAnswers,
    *,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> LabelledFeatures:
    """Return a vector of each image and question, with the answers as labels.

    The vector is ``[v, q, √d · v ∘ q]``, where v and q are the unit vectors of the image and of the
    question. The product lets a linear method combine them. Each image and each different question
    is encoded once. See also :func:`centre_question_vectors`.

    Args:
        encoder: Encoder of images and sentences of width d.
        data: Questions about images, and answers.
        cache: Cache of the image vectors. If None, they are not cached.
        progress: Function that is called with the number of encoded images and of all images.

    Returns:
        Vectors ``(n, 3 d)`` with graded targets. The identifier of a row is the path of the image,
        followed by a space and the question.

    Raises:
        InputError: If there is no question.
        ConfigError: If the encoder has no text encoder, or accepts no images.
        DataError: If an image cannot be read. The message contains the number of such images.
    """
    if not len(data):
        raise InputError("At least one question is required; got none. Give other files.")
    texts = list(dict.fromkeys(data.questions))
    row_of_text = {text: row for row, text in enumerate(texts)}
    vectors = torch.cat(  # first, because it fails early without a text tower
        [
            encoder.encode_sentences(texts[start : start + QUESTIONS_PER_BLOCK]).float().cpu()
            for start in range(0, len(texts), QUESTIONS_PER_BLOCK)
        ]
    )
    paths = list(dict.fromkeys(data.paths))
    encoded = encode_image_files(encoder, paths, cache=cache, progress=progress)
    if encoded.skipped:
        first = encoded.skipped[0]
        raise DataError(
            "All images of the questions must be readable; got "
            f"{format_count(len(encoded.skipped), 'unreadable image')} of {len(paths)}, such as "
            f"{first.path}: {first.reason}. Correct images_root, or leave out their questions."
        )
    row_of_path = {path: row for row, path in enumerate(paths)}
    images = encoded.features.pooled[[row_of_path[path] for path in data.paths]].float().cpu()
    questions = vectors[[row_of_text[text] for text in data.questions]]
    product = images * questions * images.shape[1] ** 0.5
    return LabelledFeatures(
        torch.cat([images, questions, product], dim=1).numpy().astype(np.float32),
        data.names,
        data.targets,
        paths=[f"{p} {q}" for p, q in zip(data.paths, data.questions, strict=True)],
    )


def centre_question_vectors(
    vectors: LabelledFeatures, means: npt.NDArray[np.floating]
) -> LabelledFeatures:
    """Return the vectors of images and questions after subtraction of the means of v and of q.

    The vector is ``[v', q', √d · v' ∘ q']``, where v' is ``v - mean of v``, divided by its length,
    and q' is computed from q in the same way. A vector that equals the mean becomes 0. The vectors
    of most encoders have a large common part. Without centring, the product of an image and a
    question therefore depends little on the question.

    Args:
        vectors: Vectors of ``encode_questions``, ``(n, 3 d)``.
        means: Means of the vectors of the training questions, ``(3 d,)``. All other vectors of a
            recognizer must be centred with the same means.

    Returns:
        Vectors ``(n, 3 d)`` with the targets of ``vectors``.

    Raises:
        InputError: If the width is not a multiple of 3, or ``means`` has another width.

    Source:
        None; ours. The page docs/vqa.md compares the vectors with and without centring.
    """
    width = vectors.features.shape[1]
    if width % 3 or np.shape(means) != (width,):
        raise InputError(
            "vectors must have the shape (n, 3 d) of encode_questions, and means the shape (3 d,); "
            f"got {vectors.features.shape} and {np.shape(means)}. Give features.mean(axis=0) of "
            "the training questions."
        )
    centred = vectors.features[:, : 2 * width // 3] - means[: 2 * width // 3]
    image, question = (_unit_rows(part) for part in np.split(centred, 2, axis=1))
    product = (width // 3) ** 0.5 * image * question
    features = np.concatenate([image, question, product], axis=1).astype(np.float32)
    return replace(vectors, features=features)


def _unit_rows(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return vectors divided by their length; a vector shorter than 1e-6 becomes 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.zeros_like(vectors)
    np.divide(vectors, lengths, out=unit, where=lengths > MIN_LENGTH)
    return unit
