"""Fit a method on features and targets, with the settings of a run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from surelabel.calibration import assign_folds
from surelabel.calibration.fitting.cross_fitting import smoothed_prevalence_log_odds
from surelabel.calibration.fitting.input_validation import contains_both_classes
from surelabel.config import Choice, Run
from surelabel.data import parse_label_names
from surelabel.encoders import TEMPLATES, Encoder, prompt_templates
from surelabel.errors import ConfigError
from surelabel.features import FeatureRows, SentenceFeatures
from surelabel.features.mapped_features import mapped_feature_bytes
from surelabel.links import Link, Sigmoid
from surelabel.losses import SET_LOSSES
from surelabel.losses.properties.loss_link import make_loss_link
from surelabel.methods import (
    METHODS,
    AddsTrainingLosses,
    FitsTargets,
    HasModelLink,
    LearnsFromTargets,
    Method,
    SelectsPenalties,
    TrainsEncoder,
    TunesTexts,
)
from surelabel.methods.text_scoring.text_scorer import encode_synonyms_for_text_scorer
from surelabel.optimizers import OPTIMIZERS
from surelabel.progress import Progress, report_progress
from surelabel.recognizer.penalty_fitting import fit_heads_with_selected_penalties
from surelabel.recognizer.regularizer_inputs import (
    check_regularizer_batch_size,
    frozen_text_vectors_for_regularizers,
    read_regularizer_words,
)
from surelabel.recognizer.vector_normalization import standardize_fold_vectors
from surelabel.records import Features
from surelabel.regularizers import REGULARIZERS
from surelabel.training import (
    Batch,
    BatchSource,
    Checkpoint,
    FeatureBatches,
    ImageBatches,
    Objective,
    Regularizer,
    check_training_devices,
    objective_mean_over_known,
    run_training_loop,
    select_feature_batch_rows,
    train_on_devices,
)

INITIAL_SENTENCES = 2048  # sentences from which initial values of a method are computed
INITIAL_BYTES = 2**29  # largest dense features from which initial values are computed
IMAGES_PER_BLOCK = 256  # images with dense features that are scored at once


@dataclass(frozen=True)
class FittingData:
    """Training data of a fit: features and targets of images or of texts.

    Attributes:
        paths: Paths of the images, identifiers of precomputed features, or texts, length n.
        features: Features of the images, or of the sentences of the texts.
        targets: Targets in [0, 1], ``(n, c)``, for c labels.
        known: True where the target is known, ``(n, c)``.
        rows: Row index of each image in the dataset, ``(n,)``. For texts, folds and pseudo-labels,
            None.
    """

    paths: Sequence[str]
    features: Features | SentenceFeatures | FeatureRows
    targets: Tensor
    known: Tensor
    rows: npt.NDArray[np.int64] | None = None

    def take(self, rows: npt.NDArray[np.int64]) -> "FittingData":
        """Return the training data of the images with the row numbers ``rows``."""
        indices = torch.from_numpy(rows)
        features: Features | FeatureRows
        if isinstance(self.features, FeatureRows):
            features = self.features.subset(indices)
        else:
            features = select_feature_batch_rows(self.features, indices)
        paths = [self.paths[row] for row in rows]
        return FittingData(paths, features, self.targets[rows], self.known[rows])

    def for_initial_values(self, seed: int) -> tuple[Features, Tensor, Tensor]:
        """Return features, targets and ``known``, from which initial values are computed.

        All features in memory are used. Sentences, and images whose dense features need more than
        512 MiB in float32, are sampled with ``seed``.
        """
        if isinstance(self.features, Features):
            return self.features, self.targets, self.known
        n_rows = INITIAL_SENTENCES
        if isinstance(self.features, FeatureRows):
            row_bytes = 2 * mapped_feature_bytes(self.features.take(torch.arange(1)))
            n_rows = max(INITIAL_BYTES // row_bytes, 1)
            if n_rows >= len(self.paths):
                every_row = torch.arange(len(self.paths))
                return self.features.take(every_row), self.targets, self.known
        order = np.random.default_rng(seed).permutation(len(self.paths))[:n_rows]
        rows = torch.from_numpy(order)
        return self.features.take(rows), self.targets[rows], self.known[rows]

    def assign_folds(self, folds: int, seed: int) -> npt.NDArray[np.int64]:
        """Assign each image to a random fold, and return the fold numbers, ``(n,)``.

        Raises:
            InputError: If there are fewer images with a known target than folds.
        """
        return assign_folds(self.known.numpy(), folds, np.random.default_rng(seed))


def make_link_for_fitting(run: Run) -> Link | None:
    """Return the link of the run's loss; if the loss has no link, return None."""
    return make_loss_link(run.loss.name, **run.loss.settings)


def model_link_of_method(method: Method) -> Link | None:
    """Return the link to the log-odds of a pretrained encoder, or None without such a link."""
    return method.model_link if isinstance(method, HasModelLink) else None


def resolve_run_for_fitting(run: Run) -> Run:
    """Return the run with settings that can be saved with a recognizer.

    Settings that are None are left out. Paths of files of templates or words are replaced by the
    prompt templates or words in the files, so that the run does not depend on the files.
    """
    choices: dict[str, Any] = {
        key: _resolve_choice_for_fitting(value)
        for key, value in vars(run).items()
        if isinstance(value, Choice)
    }
    return replace(run, **choices)


def parse_names_of_run(
    run: Run, names: Sequence[str]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return labels and their aliases; only a method that is fitted on pairs can have no labels.

    Raises:
        InputError: If the labels are invalid; see :func:`surelabel.data.parse_label_names`.
    """
    method = METHODS.get(run.method.name)
    if method and method.learns_from == "pairs" and not len(names):
        return [], {}
    return parse_label_names(names)


def _resolve_choice_for_fitting(choice: Choice) -> Choice:
    """Return a choice with TOML values, without None, and with the templates and words of files."""
    settings = {
        key: _fitting_setting_to_toml_value(value)
        for key, value in choice.settings.items()
        if value is not None
    }
    templates = settings.get("templates")
    if isinstance(templates, str) and templates not in TEMPLATES and "{}" not in templates:
        settings["templates"] = list(prompt_templates(templates))
    words = settings.get("words")
    if isinstance(words, str):
        settings["words"] = read_regularizer_words(words)
    return replace(choice, settings=settings)


def _fitting_setting_to_toml_value(value: Any) -> Any:
    """Convert a setting to a TOML value: tuples to lists, NumPy numbers to Python numbers."""
    if isinstance(value, np.generic):
        return value.item()
    return (
        [_fitting_setting_to_toml_value(item) for item in value]
        if isinstance(value, list | tuple)
        else value
    )


def make_method_for_fitting(
    run: Run, encoder: Encoder, names_with_aliases: Sequence[str]
) -> Method:
    """Return the initialized method of a run, whose random weights depend only on the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        method: Method = run.entry("method")(encoder, names_with_aliases)
    return method.eval()


def make_objective_for_fitting(
    run: Run, encoder: Encoder, names_with_aliases: Sequence[str], method: Method
) -> Objective:
    """Return the training objective of a run, after a test on one dummy batch to fail early.

    The regularizer of the run is added to the regularizers that belong to the method.

    Raises:
        ConfigError: If a setting is invalid, or the encoder, the method or the loss lacks what a
            regularizer requires.
        InputError: If the number of labels is not valid for the loss or a regularizer.
    """
    loss = run.entry("loss")
    regularizers: dict[str, tuple[Regularizer, float]] = {
        name: (REGULARIZERS[name], weight) for name, weight in method.recipe.regularizers.items()
    }
    if run.regularizer:
        regularizers[run.regularizer.name] = run.entry("regularizer"), run.regularizer_weight
    for name, (regularizer, _) in regularizers.items():
        check_regularizer_batch_size(name, regularizer, fitting_micro_batch_size(run))
    _check_penalty_folds(run, method, has_regularizer=bool(regularizers))
    uses_words = bool(regularizers) and method.learns_from != "pairs"
    objective = Objective(
        loss=loss if run.loss.name in SET_LOSSES else objective_mean_over_known(loss),
        regularizers=tuple(regularizers.values()),
        link=make_link_for_fitting(run),
        texts=_label_text_features_for_fitting(encoder, names_with_aliases) if uses_words else None,
        prompts=method if isinstance(method, TunesTexts) else None,
        frozen_text_vectors=frozen_text_vectors_for_regularizers(encoder, names_with_aliases)
        if uses_words
        else None,
    )
    with torch.random.fork_rng(devices=[]):  # some regularizers sample
        batch = _dummy_fitting_batch(method, len(names_with_aliases))
        objective(batch.targets, batch)
    return (
        replace(objective, method=method) if isinstance(method, AddsTrainingLosses) else objective
    )


def check_fit_devices(run: Run, method: Method, devices: int | None, device: torch.device) -> None:
    """Check that the method of a run can be trained on several devices.

    Args:
        run: Run of the fit.
        method: Method to fit.
        devices: Number of devices. If None, nothing is checked.
        device: Device of the encoder.

    Raises:
        ConfigError: If the method is not trained by the training loop, or needs all images of a
            batch.
        InputError, MissingPart: As for ``check_training_devices``.
    """
    if devices is None:
        return
    penalties = isinstance(method, SelectsPenalties) and method.penalty_folds
    if penalties or isinstance(method, FitsTargets) or method.learns_from in ("images", "nothing"):
        hint = ", or set method.penalty_folds=0" if penalties else ""
        raise ConfigError(
            "devices requires a method that the training loop trains on targets; "
            f"{run.method.name} is fitted on one device. Remove devices{hint}."
        )
    check_training_devices(method, devices, device)


def _check_penalty_folds(run: Run, method: Method, *, has_regularizer: bool) -> None:
    """Check that penalties are chosen by folds only for a loss of single scores.

    Raises:
        ConfigError: If there are penalty folds, and a regularizer or a loss that compares scores.
    """
    folds = method.penalty_folds if isinstance(method, SelectsPenalties) else 0
    cause = "a regularizer" if has_regularizer else f"loss.name={run.loss.name}"
    if folds and (has_regularizer or run.loss.name in SET_LOSSES):
        raise ConfigError(
            f"method.penalty_folds must be 0 with {cause}, which needs the training loop; got "
            f"{folds}. Remove method.penalty_folds."
        )


def _dummy_fitting_batch(method: Method, n_labels: int) -> Batch:
    """Return a batch of one image, or of two images with captions, whose targets are 0."""
    if method.learns_from != "pairs":
        zeros = torch.zeros(1, n_labels)
        return Batch(Features(zeros), zeros, zeros == 0)
    zeros = torch.zeros(2, 2)
    return Batch(Features(zeros), zeros, zeros == 0, texts=Features(torch.eye(2)))


def fit_recognizer_method(
    run: Run,
    encoder: Encoder,
    names_with_aliases: Sequence[str],
    data: FittingData,
    *,
    devices: int | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Method:
    """Return a method fitted with the settings of a run; resume from an existing checkpoint.

    If the method is fitted without the training loop, the checkpoint contains only the finished
    fit. The training loop runs on ``devices`` devices, if given.
    """
    method = make_method_for_fitting(run, encoder, names_with_aliases)
    if isinstance(method, FitsTargets):
        _fit_recognizer_method_at_once(method, data, run.seed, checkpoint)
        return method
    objective = make_objective_for_fitting(run, encoder, names_with_aliases, method)
    link = objective.link or Sigmoid()
    assert isinstance(method, LearnsFromTargets)  # by its contract
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        method.initialize(*data.for_initial_values(run.seed), link)
        if isinstance(method, SelectsPenalties) and method.penalty_folds:
            _fit_recognizer_heads_with_penalties(run, method, data, link, checkpoint, progress)
            return method
        torch.manual_seed(run.seed)
        if isinstance(method, TrainsEncoder):
            _fit_recognizer_method_head(method.frozen_feature_head(), objective, data, run.seed)
        source = _make_fitting_batches(method, encoder, data, fitting_micro_batch_size(run))
        fit_recognizer_method_on_batches(
            run,
            method,
            source,
            objective,
            devices=devices,
            device=encoder.device,
            checkpoint=checkpoint,
            progress=progress,
        )
    return method


def _fit_recognizer_method_at_once(
    method: FitsTargets, data: FittingData, seed: int, checkpoint: Checkpoint | None
) -> None:
    """Fit a method without gradients, or load its finished fit from an existing checkpoint."""
    assert isinstance(data.features, Features)  # of images
    assert isinstance(method, Method)
    state = {"method": method}
    if checkpoint and checkpoint.resume(state):
        return
    method.fit_targets(data.features, data.targets, data.known, seed)
    if checkpoint:
        checkpoint.save(state, [[]])  # one finished step without losses


def _fit_recognizer_heads_with_penalties(
    run: Run,
    method: SelectsPenalties,
    data: FittingData,
    link: Link,
    checkpoint: Checkpoint | None,
    progress: Progress | None,
) -> None:
    """Fit heads whose penalties are chosen by folds, or load the finished fit from a checkpoint."""
    assert isinstance(data.features, Features)  # of images
    assert isinstance(method, Method)
    state = {"method": method}
    if checkpoint and checkpoint.resume(state):
        return
    fit_heads_with_selected_penalties(
        method,
        data.features,
        data.targets,
        data.known,
        loss=run.entry("loss"),
        link=link,
        seed=run.seed,
        progress=progress,
    )
    if checkpoint:
        checkpoint.save(state, [[]])  # one finished step without losses


def fitting_micro_batch_size(run: Run) -> int:
    """Return the number of images per forward pass, at most ``run.micro_batch_size``."""
    return math.ceil(run.batch_size / _fitting_accumulation_steps(run))


def fit_recognizer_method_on_batches(
    run: Run,
    method: Method,
    source: BatchSource,
    objective: Objective,
    *,
    devices: int | None = None,
    device: torch.device | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> None:
    """Train a method in place with the training settings of a run.

    Batches of ``source`` must contain ``fitting_micro_batch_size(run)`` images. If ``devices`` is
    given, each batch is divided among this number of devices of the type of ``device``.
    """
    arguments: dict[str, Any] = {
        "epochs": run.epochs,
        "learning_rate": run.learning_rate,
        "weight_decay": run.weight_decay,
        "optimizer": run.entry("optimizer"),
        "accumulation_steps": _fitting_accumulation_steps(run),
        "warm_up": run.warm_up,
        "ema_decay": run.ema_decay,
        "seed": run.seed,
        "objective": objective,
        "checkpoint": checkpoint,
        "progress": progress,
    }
    device = device or torch.device("cpu")
    if devices is None or (devices == 1 and device.type != "cuda"):
        run_training_loop(method, source, **arguments)
    else:
        train_on_devices(method, source, devices=devices, device=device, **arguments)


def _fitting_accumulation_steps(run: Run) -> int:
    return math.ceil(run.batch_size / run.micro_batch_size)


def _fit_recognizer_method_head(
    head: Method, objective: Objective, data: FittingData, seed: int
) -> None:
    """Fit the head of a network on frozen features, with the training recipe of the head.

    Otherwise, gradients of a randomly initialized head would degrade the pretrained network.
    """
    recipe = head.recipe
    run_training_loop(
        head,
        FeatureBatches(data.features, data.targets, data.known, batch_size=recipe.batch_size),
        objective=objective,
        epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        optimizer=OPTIMIZERS[recipe.optimizer],
        warm_up=recipe.warm_up,
        ema_decay=recipe.ema_decay,
        seed=seed,
    )


def fitting_out_of_fold_scores(
    run: Run,
    encoder: Encoder,
    names_with_aliases: Sequence[str],
    data: FittingData,
    *,
    fold: npt.NDArray[np.int64],
    devices: int | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> npt.NDArray[np.float32]:
    """Compute scores ``(n, c)`` of n images and c labels, with methods fitted on other folds.

    The scores of an image are computed by a method that was fitted on all other folds. If the other
    folds have no known positive or no known negative target, all scores of the fold are equal. They
    are then the log-odds of the smoothed fraction of positives, converted by the link. The fit of
    each fold resumes from its file beside the file of ``checkpoint``.
    """
    folds = int(fold.max()) + 1
    scores = np.empty(tuple(data.targets.shape), dtype=np.float32)
    for k in range(folds):
        train, test_rows = data.take(np.flatnonzero(fold != k)), np.flatnonzero(fold == k)
        targets, known = train.targets.double().numpy(), train.known.numpy()
        if contains_both_classes(targets, known):
            assert not isinstance(train.features, SentenceFeatures)  # folds are refused for texts
            train_features, test_features = train.features, _test_features(data, test_rows)
            if isinstance(train_features, Features) and isinstance(test_features, Features):
                train_features, test_features = standardize_fold_vectors(
                    encoder, train_features, test_features
                )
            method = fit_recognizer_method(
                run,
                encoder,
                names_with_aliases,
                replace(train, features=train_features),
                devices=devices,
                checkpoint=checkpoint.for_fold(k + 1, folds) if checkpoint else None,
            )
            scores[test_rows] = _score_fitting_rows(method, test_features)
        else:
            log_odds = torch.tensor(smoothed_prevalence_log_odds(targets, known))
            link = make_link_for_fitting(run) or Sigmoid()
            scores[test_rows] = link.scores(log_odds).item()
        report_progress(progress, k + 1, folds, "folds")
    return scores


def _test_features(data: FittingData, rows: npt.NDArray[np.int64]) -> Features | FeatureRows:
    """Return the features of the images with the row numbers ``rows``."""
    features = data.take(rows).features
    assert not isinstance(features, SentenceFeatures)  # folds are refused for texts
    return features


@torch.no_grad()
def _score_fitting_rows(
    method: Method, features: Features | FeatureRows
) -> npt.NDArray[np.float32]:
    """Return the scores ``(n, c)`` of images; dense features are read block by block."""
    if isinstance(features, Features):
        scores: npt.NDArray[np.float32] = method(features).numpy()
        return scores
    blocks = torch.arange(len(features.pooled)).split(IMAGES_PER_BLOCK)
    return np.concatenate([method(features.take(rows)).numpy() for rows in blocks])


def _make_fitting_batches(
    method: Method, encoder: Encoder, data: FittingData, batch_size: int
) -> BatchSource:
    """Return batches of features, or of image files if the method is trained from pixels."""
    if not isinstance(method, TrainsEncoder):
        return FeatureBatches(data.features, data.targets, data.known, batch_size=batch_size)
    return ImageBatches(
        data.paths,
        data.targets,
        data.known,
        preprocess=encoder.preprocess,
        min_side=encoder.input_side,
        batch_size=batch_size,
    )


def _label_text_features_for_fitting(
    encoder: Encoder, names_with_aliases: Sequence[str]
) -> Tensor | None:
    """Return text features of the labels; if there is no text encoder, return None.

    If the text features are None, a regularizer that requires text features raises an error.
    """
    try:
        return encode_synonyms_for_text_scorer(encoder, names_with_aliases, prompt_templates("one"))
    except ConfigError:  # image-only encoder
        return None
