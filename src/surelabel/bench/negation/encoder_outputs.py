"""Compute the image vectors, text vectors and log-odds from which all rows are scored."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_expit

from surelabel.arrays import Array, ColumnIndices
from surelabel.bench.negation.scene_splits import NegationSplits
from surelabel.bench.result_cache import ResultCache
from surelabel.encoders import Encoder, load_encoder
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class SplitOutputs:
    """Outputs of one encoder for the images of one split.

    Attributes:
        vectors: Unit vectors of the images, ``(n, d)``.
        uncalibrated: Zero-shot scores, used as log-odds, ``(n, c)``.
        package: Log-odds with the calibration of the package, ``(n, c)``.
        calibrated: Log-odds with the calibration on the validation images, ``(n, c)``.
        reference: Reference term of the zero-shot scores, divided by the scale, ``(n,)``.
    """

    vectors: Array
    uncalibrated: Array
    package: Array
    calibrated: Array
    reference: Array

    def similarities(self, embeddings: Array, *, subtract_reference: bool) -> Array:
        """Return the cosine of each image and embedding, ``(n, q)``.

        Args:
            embeddings: Unit vectors of the queries, ``(q, d)``.
            subtract_reference: Whether the reference term of the image is subtracted, as in the
                zero-shot scores.
        """
        cosines = self.vectors @ embeddings.T
        return np.asarray(cosines - self.reference[:, None] if subtract_reference else cosines)


@dataclass(frozen=True)
class NegationEncoder:
    """An encoder with its outputs for the validation and the test images.

    Attributes:
        name: Name of the encoder.
        names: Labels, length c.
        validation: Outputs for the validation images.
        test: Outputs for the test images.
        calibrated_on: Description of the calibration on the validation images.
    """

    name: str
    names: tuple[str, ...]
    validation: SplitOutputs
    test: SplitOutputs
    calibrated_on: str

    @cached_property
    def encoder(self) -> Encoder:
        """Return the encoder, which is loaded once."""
        return load_encoder(self.name)

    @cached_property
    def label_vectors(self) -> Array:
        """Return unit vectors of the labels in the template of zero-shot scores, ``(c, d)``."""
        return label_text_vectors(self.encoder, self.names)

    @cached_property
    def bare_label_vectors(self) -> Array:
        """Return the unit vectors of the labels without a template, ``(c, d)``."""
        return self.sentence_vectors(self.names)

    def sentence_vectors(self, sentences: list[str] | tuple[str, ...]) -> Array:
        """Return the unit vectors of sentences, ``(s, d)``."""
        return np.asarray(self.encoder.encode_sentences(sentences).double().cpu().numpy())


def label_text_vectors(encoder: Encoder, names: tuple[str, ...]) -> Array:
    """Return the unit vectors of "a photo of a {}." for each label, ``(c, d)``."""
    return np.asarray(encoder.encode_labels(names, ("a photo of a {}.",)).double().cpu().numpy())


def measure_negation_encoder(
    splits: NegationSplits, name: str, cache: ResultCache
) -> NegationEncoder:
    """Return the outputs of an encoder for both splits, calibrated on the validation images.

    Args:
        splits: Validation and test images.
        name: Name of the encoder.
        cache: Cache of the outputs.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    encoder = load_encoder(name)
    key = (splits.fingerprint, encoder.fingerprint)
    descriptions: list[str] = []

    def compute() -> dict[str, Any]:
        arrays, calibrated_on = _compute_outputs(splits, name)
        descriptions.append(calibrated_on)
        return arrays

    shapes = {
        f"{split}_{part}": shape
        for split, images in (("validation", splits.validation), ("test", splits.test))
        for part, shape in _output_shapes(images, encoder.width).items()
    }
    arrays = cache.load_or_compute_arrays("outputs", *key, shapes=shapes, compute=compute)
    calibrated_on = cache.load_or_compute(
        *("calibration", *key),
        compute=lambda: descriptions[0] if descriptions else _compute_outputs(splits, name)[1],
    )
    validation, test = (
        SplitOutputs(**{part: arrays[f"{split}_{part}"] for part in _output_shapes(images, 0)})
        for split, images in (("validation", splits.validation), ("test", splits.test))
    )
    return NegationEncoder(name, tuple(splits.test.names), validation, test, calibrated_on)


def log_probability_of_pairs(logits: Array, pairs: ColumnIndices) -> Array:
    """Return log p_a + log(1 - p_b) of each image and pair of labels, ``(n, q)``.

    Args:
        logits: Log-odds, ``(n, c)``.
        pairs: Columns of the wanted and of the excluded label of each query, ``(q, 2)``.
    """
    return np.asarray(log_expit(logits[:, pairs[:, 0]]) + log_expit(-logits[:, pairs[:, 1]]))


def _output_shapes(images: LabelledImages, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each output for the images and a width of the vectors."""
    per_label = images.targets.shape
    return {
        "vectors": (len(images), width),
        "uncalibrated": per_label,
        "package": per_label,
        "calibrated": per_label,
        "reference": (len(images),),
    }


def _compute_outputs(splits: NegationSplits, name: str) -> tuple[dict[str, Any], str]:
    """Return the arrays of both splits, and the description of the calibration."""
    recognizer = Recognizer.zero_shot(name, list(splits.test.names))
    texts = label_text_vectors(recognizer.encoder, tuple(splits.test.names))
    arrays: dict[str, Any] = {}
    images_of_split = {"validation": splits.validation, "test": splits.test}
    feature_cache = FeatureCache(default_feature_cache_folder())
    for split, images in images_of_split.items():
        encoded = encode_image_files(
            recognizer.encoder, list(images.paths), cache=feature_cache, strict=True
        )
        vectors = encoded.features.pooled.double().numpy()
        predictions = recognizer.predict(images)
        scores = predictions.scores.astype(float)
        arrays[f"{split}_vectors"] = vectors
        arrays[f"{split}_uncalibrated"] = scores
        arrays[f"{split}_package"] = predictions.logits
        arrays[f"{split}_reference"] = (vectors @ texts.T - scores / recognizer.encoder.scale).mean(
            axis=1
        )  # equal for all labels, up to rounding
    calibrated = recognizer.calibrate(splits.validation)
    for split, images in images_of_split.items():
        arrays[f"{split}_calibrated"] = calibrated.predict(images).logits
    return arrays, str(calibrated.calibrated_on)
