"""Compute log-odds that images match sentences, from the image vectors that an index stores."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.counts import format_count
from surelabel.encoders import Encoder, embedded_calibration, prompt_templates, reference_names
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.methods import (
    Method,
    ScoresPairs,
    TextScorer,
    TrainsEncoder,
    ZeroShot,
    pair_variances_with_any_method,
)
from surelabel.recognizer.calibration_record import restore_calibration_record
from surelabel.recognizer.index_recognizer import check_recognizer_of_index
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.score_conversion import ScoreConversion
from surelabel.records import Features
from surelabel.records.calibration_description import MODEL
from surelabel.retrieval import Index
from surelabel.shapes import check_shapes

SENTENCE_BLOCK_ROWS = 4096  # images that are scored at once
CALIBRATED_INDEX = (
    "Build an index of zero-shot scores with one prompt template (`surelabel index IMAGES --model "
    "ENCODER --labels LABELS --calibrate-unlabelled`)."
)
SentenceValues = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SentenceLogOdds:
    """Log-odds that images match sentences; see :func:`sentence_scorer`.

    Attributes:
        sentences: Sentences, length s.
        texts: Unit vectors of the sentences, s rows.
        scorer: Method that scores pairs, or text scorer of the zero-shot scores.
        conversion: Conversion of the scores to log-odds.
    """

    sentences: tuple[str, ...]
    texts: Features
    scorer: Method | TextScorer
    conversion: ScoreConversion

    @property
    def calibration(self) -> str | None:
        """Return a description of the calibration, or of log-odds that need no calibration."""
        return self.conversion.description

    def logits(self, vectors: npt.NDArray[np.float16]) -> SentenceValues:
        """Return the log-odds that n images match the s sentences, in [-40, 40], ``(n, s)``.

        Args:
            vectors: Vectors of the images, as the index stores them, ``(n, d)``.

        Raises:
            InputError: If the vectors have another shape.
        """
        logits = np.empty((len(vectors), len(self.sentences)), np.float32)
        for rows, images in self._blocks(vectors):
            block = self.conversion.logits(self._scores(images), vectors[rows])
            assert block is not None  # sentence_scorer checks the calibration
            logits[rows] = block
        return logits

    @torch.no_grad()
    def variances(self, vectors: npt.NDArray[np.float16]) -> SentenceValues | None:
        """Return the variance of the similarity of each image and sentence, above 0, ``(n, s)``.

        A lower variance means a more reliable match. If the method does not estimate variances,
        return None.

        Args:
            vectors: Vectors of n images, as the index stores them, ``(n, d)``.

        Raises:
            InputError: If the vectors have another shape.
        """
        if isinstance(self.scorer, TextScorer):
            return None
        variances = np.empty((len(vectors), len(self.sentences)), np.float32)
        for rows, images in self._blocks(vectors):
            block = pair_variances_with_any_method(self.scorer, images, self.texts)
            if block is None:
                return None
            variances[rows] = block.float().cpu().numpy()
        return variances

    def _blocks(self, vectors: npt.NDArray[np.float16]) -> Iterator[tuple[slice, Features]]:
        """Yield the rows and the unit vectors of each block of images."""
        check_shapes(texts=(self.texts.pooled, "s d"), vectors=(vectors, "n d"))
        for start in range(0, len(vectors), SENTENCE_BLOCK_ROWS):
            rows = slice(start, start + SENTENCE_BLOCK_ROWS)
            pooled = torch.from_numpy(vectors[rows].astype(np.float32))
            yield rows, Features(F.normalize(pooled.to(self.texts.pooled.device), dim=-1))

    @torch.no_grad()
    def _scores(self, images: Features) -> SentenceValues:
        """Return the scores of n images for the s sentences, ``(n, s)``."""
        if isinstance(self.scorer, TextScorer):
            scores: Tensor = self.scorer(images.pooled, self.texts.pooled)
        else:
            assert isinstance(self.scorer, ScoresPairs)
            scores = self.scorer.pair_scores(images, self.texts)
        values: SentenceValues = scores.float().cpu().numpy()
        return values


def sentence_scorer(
    index: Index, recognizer: Recognizer, sentences: Sequence[str]
) -> SentenceLogOdds:
    """Return the log-odds of sentences as a function of the image vectors of an index.

        logit = g(tau · cos(x, t) - log mean_r exp(tau · cos(x, t_r)))

    Here x is the image vector, t is the vector of the sentence, and t_r is the vector of entry r of
    the reference list. tau is the scale of the encoder, and g is a calibration of zero-shot scores
    that all labels share. The calibration g is the first of the following list that exists:

    1. the calibration that the package contains for the encoder;
    2. the calibration without labels of a zero-shot recognizer on the images of the index;
    3. the scale and the bias of an encoder that was trained with the sigmoid loss, without the
       reference list.

    If the method scores pairs of images and sentences, such as ``variational``, its scores and its
    calibration are used instead. If a calibration has parameters per label, such as
    ``hierarchical``, only its shared parameters are used, as for new labels. Other calibrations of
    the recognizer belong to other scores and are not used.

    The sentence is encoded without a prompt template. The calibration of the package was fitted
    with the template ``one``, so the reference list is always encoded with ``one``, even if the
    recognizer has other templates. On the test images of scenes-80, labels without a template are
    calibrated as well as with ``one``: the calibration error (ECE) is 0.004 in both cases, for
    tiny-vit and tiny-rn. If the reference list and the calibration use the templates ``ensemble``,
    the ECE of labels without a template is 0.023 and 0.096. Therefore, a calibration of the index
    with several templates is not used.

    The calibration was fitted on labels, each of which is one object. On the same images, the mean
    probability of a caption with one object is 0.034 with tiny-vit, and the object is in 0.035 of
    the images. For captions with two objects, the mean is 0.038, but both are in only 0.007 of the
    images; the Brier skill is -1.06. With one sentence per object, combined by ``&``, the mean is
    0.002, and the Brier skill is 0.07.

    Args:
        index: Index with image vectors.
        recognizer: Recognizer of the index.
        sentences: Sentences, length s. A sentence that is longer than the context of the text tower
            is cut, with a warning.

    Raises:
        InputError: If a sentence is empty, if the index has no image vectors or vectors of another
            width, or if the recognizer is not that of the index.
        ConfigError: If the encoder has no text tower, or the method needs other inputs than image
            vectors and sentence vectors.
        NotFitted: If the method has to be fitted first, or if there is no calibration of the
            scores of sentences.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import surelabel as sl
        >>> images = sl.collection("scenes-80", split="test").take(range(8))
        >>> recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion"])
        >>> with TemporaryDirectory() as folder:
        ...     index = sl.Index.create(folder, recognizer.predict(images))
        ...     scorer = sentence_scorer(index, recognizer, ["a duck", "a pond"])
        ...     logits = [scorer.logits(vectors) for vectors in index.image_vectors()]
        >>> logits[0].shape
        (8, 2)
    """
    if isinstance(sentences, str):
        raise InputError(
            f"sentences must be a list of strings; got the string {sentences!r}. Give a list."
        )
    for sentence in sentences:
        if not sentence.strip():
            raise InputError(
                "Each sentence must contain at least one word; got an empty sentence. Remove the "
                "empty sentence."
            )
    check_recognizer_of_index(index, recognizer)
    recognizer.check_fitted()
    _check_sentence_inputs(index, recognizer)
    encoder, method = recognizer.encoder, recognizer.method
    _warn_cut_sentences(encoder, sentences)
    texts = Features(encoder.encode_sentences(sentences).float())
    scorer: Method | TextScorer
    if isinstance(method, ScoresPairs):
        assert isinstance(method, Method)
        scorer, conversion = method, _pair_score_conversion(recognizer)
    else:
        scorer, conversion = _zero_shot_scores_of_sentences(recognizer)
    return SentenceLogOdds(tuple(sentences), texts, scorer, conversion)


def _check_sentence_inputs(index: Index, recognizer: Recognizer) -> None:
    """Check that the vectors of the index and of the encoder can be used to score sentences.

    Raises:
        InputError: If the index has no vectors, or vectors of another width.
        ConfigError: If the method scores pairs and needs other inputs.
    """
    width, method, name = index.vector_width, recognizer.method, recognizer.run.method.name
    encoder = recognizer.encoder
    if width is None and len(index):
        raise InputError(
            f"A sentence in a query needs image vectors; {index.folder} contains no image vectors. "
            "Build the index again (`surelabel index`)."
        )
    if width not in (None, encoder.width):
        raise InputError(
            f"The image vectors of {index.folder} must have the width of {encoder.name}, "
            f"{encoder.width}; got {width}. Build the index again (`surelabel index`)."
        )
    if not isinstance(method, ScoresPairs):
        return
    if method.needs:
        raise ConfigError(
            f"Sentences must be scored with the image vectors of the index; {name} also needs "
            f"{', '.join(method.needs)}. Fit {name} without the setting that needs these features."
        )
    text_width = recognizer.run.method.settings.get("text_width")
    if text_width not in (None, encoder.width):
        raise ConfigError(
            f"{name} was fitted on text vectors of width {text_width}; {encoder.name} encodes "
            f"sentences as vectors of width {encoder.width}. Fit {name} again on text vectors of "
            f"{encoder.name}."
        )


def _warn_cut_sentences(encoder: Encoder, sentences: Sequence[str]) -> None:
    """Warn about each sentence that is longer than the context of the text tower."""
    for sentence, n_cut in zip(sentences, encoder.count_cut_tokens(sentences), strict=True):
        if n_cut:
            warnings.warn(
                f"The sentence {sentence[:40]!r} is longer than the context of {encoder.name}. The "
                f"text encoder ignores the last {format_count(n_cut, 'token')}. Shorten the "
                "sentence.",
                stacklevel=3,
            )


def _pair_score_conversion(recognizer: Recognizer) -> ScoreConversion:
    """Return the conversion of the scores of pairs, with shared parameters only.

    Raises:
        NotFitted: If there is neither a link nor a calibration with shared parameters.
    """
    name, record = recognizer.run.method.name, recognizer.calibration
    description = recognizer.calibrated_on
    if description is None:
        raise NotFitted(
            f"The scores of {name} for sentences are not calibrated. Calibrate the recognizer on "
            "annotated images (`surelabel calibrate`), and build the index again."
        )
    if record is None:
        return ScoreConversion(description, recognizer.link, None)
    calibrator = record.calibrator.shared_calibrator()
    if calibrator is None:
        raise NotFitted(
            f"The calibration of {name} ({record.name}) has only parameters per label, which do "
            "not apply to sentences. Calibrate with another calibrator, such as beta, and build "
            "the index again."
        )
    shared = replace(
        record,
        calibrator=calibrator,
        shift=(),
        tree=None,
        recalibration=record.recalibration and replace(record.recalibration, label_shifts=()),
    )
    return ScoreConversion(description, recognizer.link, shared)


def _zero_shot_scores_of_sentences(recognizer: Recognizer) -> tuple[TextScorer, ScoreConversion]:
    """Return the zero-shot scores of sentences, and their conversion to log-odds.

    Raises:
        NotFitted: If there is no calibration of the scores.
    """
    encoder, method = recognizer.encoder, recognizer.method
    _check_default_image_size(recognizer)
    zero_shot = ZeroShot(encoder, reference_names()[:1])  # this label is not scored
    shared = restore_calibration_record(embedded_calibration(encoder))
    if shared is not None:
        return zero_shot.text_scorer, ScoreConversion(MODEL, None, shared)
    reason = f"{encoder.name} has no such calibration"
    calibration = recognizer.calibration
    if isinstance(method, ZeroShot) and calibration is not None and not calibration.uses_labels:
        obstacle = _index_calibration_obstacle(recognizer)
        if obstacle is None:
            recalibration = calibration.recalibration
            shared = replace(
                calibration,
                shift=(),
                tree=None,
                recalibration=recalibration and replace(recalibration, label_shifts=()),
            )
            return method.text_scorer, ScoreConversion(MODEL, recognizer.link, shared)
        reason += f", and the calibration of the index {obstacle}"
    if zero_shot.model_link is not None and not isinstance(method, TrainsEncoder):
        return zero_shot.text_scorer, ScoreConversion(MODEL, zero_shot.model_link, None)
    raise NotFitted(
        "A sentence in a query needs a calibration of zero-shot scores that all texts share; "
        f"{reason}. {CALIBRATED_INDEX}"
    )


def _index_calibration_obstacle(recognizer: Recognizer) -> str | None:
    """Return why the calibration of zero-shot scores does not apply to sentences, or None."""
    calibration = recognizer.calibration
    assert calibration is not None
    templates = prompt_templates(recognizer.run.method.settings.get("templates", "one"))
    if not calibration.calibrator.shares_parameters:
        return f"has parameters per label ({calibration.name})"
    if recognizer.method.scores_depend_on_other_labels:
        return "was fitted on scores that depend on the other labels"
    if len(templates) > 1:
        return f"was fitted with {len(templates)} prompt templates"
    return None


def _check_default_image_size(recognizer: Recognizer) -> None:
    """Check that the image vectors have the image size for which an encoder is calibrated.

    Raises:
        NotFitted: If the method encodes images at another size.
    """
    size, encoder = recognizer.method.image_size, recognizer.encoder
    if size not in (None, encoder.input_side):
        name = recognizer.run.method.name
        raise NotFitted(
            f"Zero-shot scores of {encoder.name} are calibrated for the image size "
            f"{encoder.input_side} pixels; {name} uses the image size {size} pixels. Build an "
            "index with another method, such as zero_shot."
        )
