"""Predict base and new labels with recognizers that were fitted on the base labels."""

import time
import warnings
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.bench.base_new_splits import (
    BaseNewSplits,
    base_new_vocabulary,
    few_shot_images,
    few_shot_synthesized_images,
    few_shot_texts,
)
from surelabel.bench.result_cache import ResultCache
from surelabel.calibration import Dac, LabelTexts
from surelabel.config import Run
from surelabel.data import Vocabulary, align_to_vocabulary
from surelabel.encoders import prompt_templates
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer
from surelabel.recognizer.vocabulary_change import label_texts
from surelabel.records import Images, LabelledImages, LabelledTexts

RAW, CALIBRATED = "raw", "calibrated"
TIMED_EPOCHS = (1, 5)  # of two fits; the difference of their times excludes set-up and encoding
TIMED_IMAGES = 32


@dataclass(frozen=True)
class BaseNewFit:
    """Settings of one fit on the base labels.

    Attributes:
        run: Run with the method, the loss, the regularizer, the epochs and the seed, which is also
            the seed of the few-shot sample.
        split: Split of the labels; see ``base_new_vocabulary``.
        shots: Number of positive images or captions per base label.
        uses_large_train: Whether the images are sampled from ``BaseNewSplits.large_train``.
        domains: Domains of the test images that are predicted in addition to ``photo``.
    """

    run: Run
    split: str
    shots: int
    uses_large_train: bool = False
    domains: tuple[str, ...] = ()

    @property
    def learns_from(self) -> str:
        """Return the kind of data that the method is fitted on, such as ``labels``."""
        return METHODS[self.run.method.name].learns_from

    def vocabulary(self, images: BaseNewSplits) -> Vocabulary:
        """Return the base labels (``seen``) and the new labels (``unseen``)."""
        return base_new_vocabulary(images.test.names, self.split)

    def training_data(self, images: BaseNewSplits) -> LabelledImages | LabelledTexts:
        """Return the few-shot sample: images, or captions if the method learns from texts."""
        labels = self.vocabulary(images).seen
        if self.learns_from == "texts":
            return few_shot_texts(images.captions, labels, self.shots, self.run.seed)
        train = images.large_train if self.uses_large_train else images.train
        return few_shot_images(train, labels, self.shots, self.run.seed)

    def steps_per_epoch(self, data: LabelledImages | LabelledTexts) -> int:
        """Return the number of optimizer steps of an epoch.

        A fit on texts also learns from one sentence for each label and prompt template.
        """
        n_templates = len(prompt_templates("one")) + len(prompt_templates("ensemble"))
        n_sentences = len(data.names) * n_templates if isinstance(data, LabelledTexts) else 0
        return ceil((len(data) + n_sentences) / self.run.batch_size)


@dataclass(frozen=True)
class SynthesizedFit(BaseNewFit):
    """Settings of one fit on images that are synthesized for captions.

    Attributes:
        training_domain: Visual domain of the synthesized images. The test images have the domain
            ``photo``.
    """

    training_domain: str = "photo"

    def training_data(self, images: BaseNewSplits) -> LabelledImages:
        """Return one image for each caption of the few-shot sample."""
        texts = few_shot_texts(
            images.captions, self.vocabulary(images).seen, self.shots, self.run.seed
        )
        return few_shot_synthesized_images(texts, self.training_domain, self.run.seed)


@dataclass(frozen=True)
class BaseNewPredictions:
    """Predictions of one recognizer for b base labels, and for all c base and new labels.

    If the loss has a link, the scores are log-odds. Otherwise, they are raw scores.

    Attributes:
        validation: Scores of the base labels for the m validation images, ``(m, b)``.
        test: Scores of all labels for the n test images, base labels first, ``(n, c)``.
        domains: Scores of all labels for the test images of each domain, ``(n, c)``.
        texts: Text vectors of all labels, from the frozen text encoder and from learned prompts.
        parameters: Number of trained parameters.
        seconds: Processor time of fitting and prediction, in seconds.
    """

    validation: Array
    test: Array
    domains: dict[str, Array]
    texts: LabelTexts
    parameters: int
    seconds: float


def predict_base_and_new(
    cache: ResultCache, images: BaseNewSplits, fit: BaseNewFit
) -> BaseNewPredictions:
    """Fit a recognizer on the base labels and predict the base and new labels.

    Args:
        cache: Cache of the predictions.
        images: Train, validation and test images.
        fit: Settings of the fit.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """

    def compute() -> dict[str, Any]:
        start = time.process_time()
        recognizer = _fit_on_base_labels(images, fit)
        extended = _with_new_labels(recognizer, images, fit)
        texts = label_texts(extended.method, extended.encoder, extended.names_with_aliases)
        scores = {
            "validation": _log_odds_or_scores(recognizer, images.validation),
            "test": _log_odds_or_scores(extended, images.test),
        }
        scores |= {d: _log_odds_or_scores(extended, images.domains[d]) for d in fit.domains}
        parameters = sum(p.numel() for p in recognizer.method.parameters() if p.requires_grad)
        seconds = time.process_time() - start
        return scores | {
            "zero_shot_texts": texts.zero_shot,
            "tuned_texts": texts.tuned,
            "cost": [parameters, seconds],
        }

    vocabulary = fit.vocabulary(images)
    test_shape, width = (len(images.test), len(vocabulary.names)), images.encoder.width
    shapes = {
        "validation": (len(images.validation), len(vocabulary.seen)),
        "test": test_shape,
        **dict.fromkeys(fit.domains, test_shape),
        **dict.fromkeys(("zero_shot_texts", "tuned_texts"), (len(vocabulary.names), width)),
        "cost": (2,),
    }
    arrays = cache.load_or_compute_arrays(
        *("base and new", images.fingerprint, fit), shapes=shapes, compute=compute
    )
    parameters, seconds = arrays["cost"].tolist()
    return BaseNewPredictions(
        arrays["validation"],
        arrays["test"],
        {domain: arrays[domain] for domain in fit.domains},
        LabelTexts(arrays["zero_shot_texts"], arrays["tuned_texts"]),
        int(parameters),
        seconds,
    )


def base_new_readouts(
    predictions: BaseNewPredictions, images: BaseNewSplits, fit: BaseNewFit, *, dac: bool = False
) -> dict[str, dict[str, Array]]:
    """Return the log-odds of all labels in each domain, raw and after a shared calibrator.

    The calibrator is Platt scaling with one slope and intercept for all labels, fitted on the base
    labels of the validation images. If the scores are not log-odds, they are used as raw log-odds.

    Args:
        predictions: Predictions of a recognizer.
        images: Images whose validation targets are used.
        fit: Settings of the fit.
        dac: Whether the log-odds of each new label are multiplied by its factor of ``Dac``.

    Returns:
        Log-odds in [-40, 40], ``(n, c)``, by readout (``raw`` and ``calibrated``) and by domain
        (``photo`` and the domains of the predictions).
    """
    base_labels, texts = fit.vocabulary(images).seen, predictions.texts
    validation, _ = align_to_vocabulary(images.validation, base_labels)
    n_base = len(base_labels)
    fit_texts = LabelTexts(texts.zero_shot[:n_base], texts.tuned[:n_base])
    calibrator = Dac().fit(predictions.validation, validation.targets, validation.known)
    platt = calibrator.shared_calibrator()
    factors = calibrator.with_label_texts(fit_texts, texts).factors if dac else 1.0
    scores = {"photo": predictions.test} | predictions.domains

    def limit(logits: Array) -> Array:
        return np.clip(logits, -LOGIT_LIMIT, LOGIT_LIMIT)

    return {
        RAW: {domain: limit(factors * x) for domain, x in scores.items()},
        CALIBRATED: {
            domain: limit(factors * (platt.slope_ * x + platt.shift_))
            for domain, x in scores.items()
        },
    }


def time_base_new_fit(images: BaseNewSplits, fit: BaseNewFit) -> dict[str, float]:
    """Measure the processor time of one optimizer step, and of all other parts of a fit.

    Args:
        images: Images of the fit.
        fit: Settings of the fit.

    Returns:
        Dictionary with ``step_seconds`` (one optimizer step) and ``other_seconds`` (set-up and
        prediction for all validation and test images, extrapolated from a part), in seconds.
    """
    data = fit.training_data(images)
    batch = data.take(range(min(fit.run.batch_size, len(data))))
    _fit_recognizer(images, fit, replace(fit.run, epochs=1), batch)  # loads modules and features
    fit_seconds = []
    for epochs in TIMED_EPOCHS:
        start = time.process_time()
        recognizer = _fit_recognizer(images, fit, replace(fit.run, epochs=epochs), batch)
        fit_seconds.append(time.process_time() - start)
    steps = fit.steps_per_epoch(batch)
    n_steps = steps * (TIMED_EPOCHS[1] - TIMED_EPOCHS[0])
    step_seconds = max(fit_seconds[1] - fit_seconds[0], 0) / n_steps
    start = time.process_time()
    extended = _with_new_labels(recognizer, images, fit)
    set_up_seconds = fit_seconds[0] - steps * step_seconds + time.process_time() - start
    timed = images.test.take(range(min(TIMED_IMAGES, len(images.test))))
    _log_odds_or_scores(extended, timed)  # encodes the images before the timed prediction
    start = time.process_time()
    _log_odds_or_scores(extended, timed)
    n_predicted = len(images.validation) / 2 + len(images.test) * (1 + len(fit.domains))
    predict_seconds = (time.process_time() - start) * n_predicted / len(timed)
    return {"step_seconds": step_seconds, "other_seconds": set_up_seconds + predict_seconds}


def _fit_on_base_labels(images: BaseNewSplits, fit: BaseNewFit) -> Recognizer:
    """Return a recognizer for the base labels, fitted if the method learns from data."""
    if fit.learns_from == "nothing":
        return Recognizer(fit.run, fit.vocabulary(images).seen, encoder=images.encoder)
    return _fit_recognizer(images, fit, fit.run, fit.training_data(images))


def _fit_recognizer(
    images: BaseNewSplits, fit: BaseNewFit, run: Run, data: LabelledImages | LabelledTexts
) -> Recognizer:
    recognizer = Recognizer(run, fit.vocabulary(images).seen, encoder=images.encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warnings about labels without captions
        return recognizer.fit(data)


def _with_new_labels(recognizer: Recognizer, images: BaseNewSplits, fit: BaseNewFit) -> Recognizer:
    """Return the recognizer for the base and new labels."""
    return recognizer.with_names(fit.vocabulary(images).names)


def _log_odds_or_scores(recognizer: Recognizer, images: LabelledImages) -> Array:
    """Return log-odds of the images, or scores if there are no log-odds, ``(n, c)``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warnings about images of other domains
        predictions = recognizer.predict(Images(list(images.paths)), strict=True)
    logits = predictions.scores if predictions.logits is None else predictions.logits
    return np.asarray(logits, dtype=np.float32)
