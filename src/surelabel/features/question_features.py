"""Compute vectors of pairs of an image and a question."""

import numpy as np
import torch

from surelabel.encoders import Encoder
from surelabel.errors import DataError
from surelabel.features.cache import FeatureCache
from surelabel.features.image_features import encode_image_files
from surelabel.progress import Progress
from surelabel.records import LabelledFeatures, QuestionAnswers

QUESTIONS_PER_BLOCK = 256


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
    is encoded once.

    Args:
        encoder: Encoder of images and sentences of width d.
        data: Questions about images, and answers.
        cache: Cache of the image vectors. If None, they are not cached.
        progress: Function that is called with the number of encoded images and of all images.

    Returns:
        Vectors ``(n, 3 d)`` with graded targets. The identifier of a row is the path of the image,
        followed by a space and the question.

    Raises:
        DataError: If an image cannot be read.
    """
    paths = list(dict.fromkeys(data.paths))
    encoded = encode_image_files(encoder, paths, cache=cache, strict=True, progress=progress)
    if encoded.features is None:
        raise DataError("At least one question is required; got none. Give other files.")
    row_of_path = {path: row for row, path in enumerate(paths)}
    images = encoded.features.pooled[[row_of_path[path] for path in data.paths]].float().cpu()
    texts = list(dict.fromkeys(data.questions))
    row_of_text = {text: row for row, text in enumerate(texts)}
    vectors = torch.cat(
        [
            encoder.encode_sentences(texts[start : start + QUESTIONS_PER_BLOCK]).float().cpu()
            for start in range(0, len(texts), QUESTIONS_PER_BLOCK)
        ]
    )
    questions = vectors[[row_of_text[text] for text in data.questions]]
    product = images * questions * images.shape[1] ** 0.5
    return LabelledFeatures(
        torch.cat([images, questions, product], dim=1).numpy().astype(np.float32),
        data.names,
        data.targets,
        paths=[f"{p} {q}" for p, q in zip(data.paths, data.questions, strict=True)],
    )
