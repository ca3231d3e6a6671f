"""Fit a method on pairs of images and captions."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from surelabel.config import Run
from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.features import (
    FeatureCache,
    SentenceFeatures,
    encode_image_files,
    encode_sentence_block_features,
    encode_sentence_features,
    normalize_precomputed_vectors,
)
from surelabel.methods import Method, UsesLadder
from surelabel.progress import Progress
from surelabel.recognizer.feature_extraction import extract_features
from surelabel.recognizer.fitting import (
    fit_recognizer_method_on_batches,
    fitting_micro_batch_size,
    make_method_for_fitting,
    make_objective_for_fitting,
)
from surelabel.recognizer.user_warnings import warn_cut_captions, warn_skipped_images
from surelabel.recognizer.vector_normalization import (
    image_vector_normalization,
    text_vector_normalization,
)
from surelabel.records import Features, PairFeatures, Pairs
from surelabel.training import Checkpoint, PairBatches

PairSource = Pairs | PairFeatures


@dataclass(frozen=True)
class PairFittingData:
    """Features of images and of their captions.

    Attributes:
        images: Features of n images.
        texts: Features of u different texts of captions.
        image_rows: Row of the image of each caption, ``(s,)``.
        text_rows: Row of the text of each caption, ``(s,)``.
        source_images: Row of each image in the source, ``(n,)``. Images that cannot be read, and
            their captions, are left out.
    """

    images: Features
    texts: Features | SentenceFeatures
    image_rows: Tensor
    text_rows: Tensor
    source_images: npt.NDArray[np.int64]

    def fingerprint(self) -> str:
        """Return a description with a hash of images, captions and pairs, for checkpoints."""
        digest = hashlib.sha256()
        for tensor in (self.images.pooled, self.texts.pooled, self.image_rows, self.text_rows):
            digest.update(tensor.cpu().numpy().tobytes())
        return f"{len(self.image_rows)} captions, {digest.hexdigest()[:16]}"


def check_pair_fit_compatibility(run: Run, method: Method, source: object, folds: int) -> None:
    """Check that method, data and settings are compatible in a fit on pairs.

    Raises:
        ConfigError: If the method is not fitted on pairs, if ``source`` is neither ``Pairs`` nor
            ``PairFeatures``, or if ``folds`` is not 0.
    """
    run.entry("calibrator")()  # raises an error if a setting is out of range
    name = run.method.name
    if method.learns_from != "pairs":
        raise ConfigError(
            f"{name} is not fitted on images with captions; got {type(source).__name__}. Give "
            "annotated images, or use method.name=variational."
        )
    if not isinstance(source, PairSource):
        raise ConfigError(
            f"{name} is fitted on images with captions; got {type(source).__name__}. Give Pairs, "
            "for example from data.read_pairs, or use method.name=variational_tagger for annotated "
            "images."
        )
    if folds:
        raise ConfigError(
            f"folds requires annotated images; {name} is fitted on images with captions. Remove "
            "folds, and calibrate the fitted recognizer on annotated images."
        )


def encode_pair_data(
    source: PairSource,
    method: Method | None,
    encoder: Encoder,
    cache: FeatureCache,
    *,
    progress: Progress | None = None,
) -> PairFittingData:
    """Return the features of images and captions; unreadable images are left out.

    Args:
        source: Images with captions, or precomputed vectors.
        method: Method that scores the pairs. If None, only vectors of images and sentences are
            encoded.
        encoder: Encoder of the images and the captions.
        cache: Cache of image features.
        progress: Function called with the number of encoded images and the total number of images.

    Raises:
        DataError: If no image can be read.
        ConfigError: If the method needs tokens or patches, and ``source`` has only vectors.
        InputError: If the width of the image vectors is not that of the encoder.
    """
    if isinstance(source, PairFeatures):
        return _pair_data_of_vectors(source, method, encoder)
    paths = [str(path) for path in source.paths]
    encoded = (
        encode_image_files(encoder, paths, cache=cache, progress=progress)
        if method is None
        else extract_features(paths, method, encoder, cache=cache, progress=progress)
    )
    warn_skipped_images(encoded.skipped, len(source.paths), "images")
    new_row = np.full(len(source.paths), -1)
    new_row[encoded.rows] = np.arange(len(encoded.rows))
    image_rows = new_row[source.image_rows]
    source_captions = np.flatnonzero(image_rows >= 0)
    captions = [source.captions[row] for row in source_captions.tolist()]
    warn_cut_captions(encoder, captions)
    row_of_text = {text: row for row, text in enumerate(dict.fromkeys(captions))}
    return PairFittingData(
        encoded.features,
        encode_pair_texts(encoder, list(row_of_text), method),
        torch.from_numpy(image_rows[source_captions]),
        torch.tensor([row_of_text[text] for text in captions]),
        encoded.rows,
    )


def encode_pair_texts(
    encoder: Encoder, sentences: Sequence[str], method: Method | None
) -> Features | SentenceFeatures:
    """Return the features of sentences, with the tokens that the method needs.

    If the method runs the last blocks of the image tower again, the tokens are the inputs of the
    last blocks of the text tower. If the method needs patches of images, the tokens are vectors in
    the joint space.
    """
    if isinstance(method, UsesLadder):
        return encode_sentence_block_features(encoder, sentences, depth=method.ladder_blocks[1])
    if method is not None and method.needs:
        return encode_sentence_features(encoder, sentences)
    return Features(encoder.encode_sentences(sentences).float())


def _pair_data_of_vectors(
    source: PairFeatures, method: Method | None, encoder: Encoder
) -> PairFittingData:
    if method is not None and method.needs:
        raise ConfigError(
            f"The method needs {', '.join(method.needs)} of images and tokens of captions; got "
            "precomputed vectors. Give image files, or remove the setting that needs these "
            "features."
        )
    images = normalize_precomputed_vectors(
        source.image_vectors,
        width=encoder.width,
        normalization=image_vector_normalization(encoder),
    )
    texts = normalize_precomputed_vectors(
        source.text_vectors,
        width=source.text_vectors.shape[1],
        normalization=text_vector_normalization(encoder),
    )
    image_rows, text_rows = torch.from_numpy(source.image_rows), torch.from_numpy(texts.rows)
    return PairFittingData(images.features, texts.features, image_rows, text_rows, images.rows)


def fit_recognizer_method_on_pairs(
    run: Run,
    encoder: Encoder,
    names_with_aliases: list[str],
    data: PairFittingData,
    *,
    devices: int | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Method:
    """Return a method fitted on pairs with the settings of a run; resume from a checkpoint."""
    method = make_method_for_fitting(run, encoder, names_with_aliases)
    objective = make_objective_for_fitting(run, encoder, names_with_aliases, method)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        batches = PairBatches(
            data.images,
            data.texts,
            data.image_rows,
            data.text_rows,
            batch_size=fitting_micro_batch_size(run),
        )
        fit_recognizer_method_on_batches(
            run,
            method,
            batches,
            objective,
            devices=devices,
            device=encoder.device,
            checkpoint=checkpoint,
            progress=progress,
        )
    return method
