"""Find label errors, that is, targets that out-of-fold probabilities contradict."""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.calibration import cross_fitted_logits, logits_given_other_targets
from surelabel.config import Run, load_run, method_settings_of_run
from surelabel.counts import format_count
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.evaluation import ERROR_KINDS, LabelErrors, find_label_errors
from surelabel.methods import METHODS
from surelabel.progress import Progress
from surelabel.recognizer.calibrating import select_run_calibrator
from surelabel.recognizer.inputs import RecognizerInput, resolve_recognizer_targets
from surelabel.recognizer.method_comparison import OutOfFoldScores, out_of_fold_scores
from surelabel.recognizer.method_selection import (
    DEFAULT_FOLDS,
    DEFAULT_MAX_PASSES,
    DEFAULT_MINUTES,
    compare_methods,
)
from surelabel.recognizer.method_selection_record import MethodSelection
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.user_warnings import warn_skipped_images
from surelabel.recognizer.vector_normalization import encoder_with_fitted_normalization, row_noun
from surelabel.records import Images, LabelledImages

MIN_AUDIT_IMAGES = 20  # fewest images with a known target


@dataclass(frozen=True)
class SuspectedError:
    """Target of one label of an image that is probably wrong.

    Attributes:
        path: Path of the image, or identifier of the row of precomputed features.
        label: Label.
        kind: ``missing positive`` for a negative target, ``wrong positive`` for a positive target.
        probability: Out-of-fold probability that the target is positive, in [0, 1].
        error_probability: Estimated probability that the target is wrong, in [0, 1].
    """

    path: str
    label: str
    kind: str
    probability: float
    error_probability: float


@dataclass(frozen=True)
class LabelAudit:
    """Result of :func:`audit`.

    Attributes:
        paths: Paths of the n readable images, or identifiers of precomputed features.
        names: Labels, length c.
        errors: Probabilities of errors of all targets.
        description: Text that names the method, the folds and the calibrator.
        noun: Noun of a row in messages: ``image``, or ``row`` of precomputed features.
        has_images: Whether ``paths`` are paths of image files, not identifiers of vectors or
            scores.
        selection: Results of the model selection. If the method was given, the value is None.
    """

    paths: Sequence[str]
    names: Sequence[str]
    errors: LabelErrors
    description: str
    noun: str
    has_images: bool
    selection: MethodSelection | None = None

    def suspected(self, kind: str, *, flagged_only: bool = True) -> list[SuspectedError]:
        """Return the targets with one kind of suspected error, most probable errors first.

        Args:
            kind: ``missing positive`` or ``wrong positive``.
            flagged_only: Whether to return only targets that are more likely wrong than correct.

        Raises:
            InputError: If the kind is unknown.
        """
        errors = self.errors
        return [
            SuspectedError(
                self.paths[image],
                self.names[label],
                kind,
                float(errors.probabilities[image, label]),
                float(errors.error_probabilities[image, label]),
            )
            for image, label in errors.ranking(kind, flagged_only=flagged_only)
        ]

    def label_rows(self) -> list[dict[str, Any]]:
        """Return the numbers of targets and suspected errors of each label, most errors first."""
        errors = self.errors
        negative, flagged = errors.known & ~errors.is_positive, errors.flagged
        rows = [
            {
                "label": name,
                "positives": int(errors.is_positive[:, c].sum()),
                "negatives": int(negative[:, c].sum()),
                "missing positives": int((flagged & negative)[:, c].sum()),
                "wrong positives": int((flagged & errors.is_positive)[:, c].sum()),
            }
            for c, name in enumerate(self.names)
        ]
        return sorted(rows, key=lambda row: -row["missing positives"] - row["wrong positives"])

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object with all flagged targets."""
        return {
            "rows": len(self.paths),
            "labels": len(self.names),
            "method": self.description,
            "rates": vars(self.errors.rates),
            "by_label": self.label_rows(),
            "suspected": [vars(error) for kind in ERROR_KINDS for error in self.suspected(kind)],
        }


def audit(
    source: RecognizerInput,
    targets: npt.ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    model: str | None = None,
    run_file: str | Path | None = None,
    settings: Sequence[str] = (),
    folds: int = DEFAULT_FOLDS,
    minutes: float = DEFAULT_MINUTES,
    max_passes: int | None = DEFAULT_MAX_PASSES,
    device: str = "cpu",
    describe: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> LabelAudit:
    """Find targets that are probably wrong: missing positives and wrong positives.

    Each image is scored by a method that was fitted on the other folds, and calibrated by a
    calibrator that was fitted on the other folds. The probabilities are then updated by the other
    targets of the image (``logits_given_other_targets``). A target is flagged if it is more likely
    wrong than correct (``find_label_errors``). Flags are suggestions: check each of them.

    Args:
        source: Images or features with labels.
        targets: Targets of n images and c labels, ``(n, c)``, as for ``Recognizer.fit``.
        names: Labels, length c. If None, the labels of ``source``.
        model: Name of an encoder, or folder of a saved recognizer, whose method is fitted again on
            the folds. If None, the encoder of the settings, or ``tiny-vit``.
        run_file: TOML file with the settings of the run, as for ``load_run``. If None, the default
            settings are used.
        settings: Settings of the run, such as ``method.name=linear``. Without a method, the methods
            are compared as by ``select_method``.
        folds: Number of cross-validation folds, >= 2.
        minutes: Maximum expected time in minutes of each compared method, above 0.
        max_passes: Maximum number of encoder passes of an image of compared methods, >= 1. If
            None, there is no maximum.
        device: PyTorch device of the encoder.
        describe: Function called with a sentence before methods are compared.
        progress: Function called with the number of finished items and the total number of items.
            For each method, the items are first encoded images, then folds.

    Raises:
        InputError: If ``source`` has no labels, no positive target or no negative target. Also if
            ``source`` has fewer than 20 images with a known target, or fewer images than folds, or
            if settings are given for a saved recognizer.
        ConfigError: If the method is fitted on texts or pairs, or if a setting is invalid.
        DataError: If fewer than 20 images with a known target can be read.
        UnknownName: If the encoder, or the name of a part in the settings, is unknown.

    Source:
        Out-of-fold probabilities for label errors: Northcutt, Jiang and Chuang, Confident Learning,
        Journal of Artificial Intelligence Research 2021.

    Differs:
        The error rates are estimated by ``find_label_errors``, not by counts above a threshold for
        each class. The probabilities of a target depend on the other targets of the image.

    Example:
        >>> import surelabel as sl
        >>> rng = np.random.default_rng(0)
        >>> vectors = rng.normal(size=(100, 2))
        >>> targets = (vectors > 0).astype(float)
        >>> row = int(vectors[:, 0].argmax())
        >>> targets[row, 0] = 0  # a missing positive
        >>> labelled = sl.LabelledFeatures(vectors, ["lion", "car"], targets)
        >>> settings = ["method.name=linear", "epochs=5", "calibrator.name=beta"]
        >>> result = sl.audit(labelled, model="features:2", settings=settings)
        >>> result.suspected("missing positive", flagged_only=False)[0].path == f"row {row}"
        True
    """
    resolved = resolve_recognizer_targets(source, targets, names or ())
    if isinstance(resolved, Images) or not len(resolved.names):
        raise InputError(
            f"An audit requires annotated images; got {len(resolved)} images without labels. Give "
            "LabelledImages, or targets and names."
        )
    labels = list(resolved.names if names is None else names)
    has_images = isinstance(resolved, LabelledImages)
    n_labelled = int(resolved.known.any(axis=1).sum())
    if n_labelled < MIN_AUDIT_IMAGES:
        raise InputError(
            f"An audit requires at least {MIN_AUDIT_IMAGES} images with known targets; got "
            f"{n_labelled}. Add annotated images."
        )
    is_saved = model is not None and Path(model).is_dir()
    if is_saved or _has_method(run_file, settings):
        recognizer = _recognizer_of_audit(model, run_file, settings, labels, resolved, device)
        scores = out_of_fold_scores(recognizer, resolved, folds, progress=progress)
        warn_skipped_images(scores.skipped, len(resolved))
        return _audit_of_scores(scores, recognizer, folds, has_images=has_images)
    compared = compare_methods(
        resolved,
        names=labels,
        model=model,
        run_file=run_file,
        settings=settings,
        folds=folds,
        minutes=minutes,
        max_passes=max_passes,
        device=device,
        describe=describe,
        progress=progress,
    )
    best = compared.comparisons[0]
    with warnings.catch_warnings():  # the comparison emitted them
        warnings.simplefilter("ignore", UserWarning)
        recognizer = Recognizer(
            best.run, compared.names, encoder=compared.encoder, cache=compared.cache
        )
    warn_skipped_images(best.scores.skipped, len(resolved))
    return _audit_of_scores(
        best.scores, recognizer, folds, has_images=has_images, selection=compared.selection
    )


def _has_method(run_file: str | Path | None, settings: Sequence[str]) -> bool:
    return bool(method_settings_of_run(run_file, settings))


def _recognizer_of_audit(
    model: str | None,
    run_file: str | Path | None,
    settings: Sequence[str],
    labels: Sequence[str],
    source: Any,
    device: str,
) -> Recognizer:
    """Return an unfitted recognizer of a saved run, or of the settings.

    Raises:
        InputError: If settings are given for a saved recognizer.
        ConfigError: If the method is fitted on texts or pairs.
    """
    if model is not None and Path(model).is_dir():
        if settings or run_file:
            raise InputError(
                f"Settings require an encoder as the model; got the saved recognizer {model}, "
                "whose settings cannot be changed. Remove the settings, or give an encoder."
            )
        saved = Recognizer.load(model, device=device)
        run, encoder = saved.run, saved.encoder
        _check_method_of_audit(run)
    else:
        overrides = [*settings, *([f"encoder.name={json.dumps(model)}"] if model else [])]
        run = load_run(run_file, overrides)
        _check_method_of_audit(run)
        encoder = load_encoder(run.encoder.name, device=device, **run.encoder.settings)
    encoder = encoder_with_fitted_normalization(encoder, source)
    return Recognizer(run, labels, encoder=encoder)


def _check_method_of_audit(run: Run) -> None:
    """Check that the method of a run can be fitted on folds.

    Raises:
        ConfigError: If the method is fitted on texts or pairs.
    """
    learns_from = METHODS[run.method.name].learns_from
    if learns_from not in ("nothing", "labels", "images"):
        raise ConfigError(
            f"An audit fits a method on folds of annotated images; got {run.method.name}, which is "
            f"fitted on {learns_from}. Give another method, such as linear, or give no method."
        )


def _audit_of_scores(
    scores: OutOfFoldScores,
    recognizer: Recognizer,
    folds: int,
    *,
    has_images: bool,
    selection: MethodSelection | None = None,
) -> LabelAudit:
    """Return the label errors of out-of-fold scores.

    Raises:
        DataError: If fewer than 20 images with a known target can be read.
    """
    run, known, targets = recognizer.run, scores.known, scores.targets
    n_labelled = int(known.any(axis=1).sum())
    noun = row_noun(recognizer.encoder)
    if n_labelled < MIN_AUDIT_IMAGES:
        raise DataError(
            f"An audit requires at least {MIN_AUDIT_IMAGES} readable images with known targets; "
            f"got {n_labelled}. Replace the unreadable images, or annotate more images."
        )
    calibrator = select_run_calibrator(run, scores.raw, targets, known)
    calibrated = cross_fitted_logits(
        calibrator.make_calibrator,
        scores.raw,
        targets,
        known,
        vectors=scores.vectors,
        folds=folds,
        seed=run.seed,
    )
    logits = logits_given_other_targets(calibrated, targets, known, folds=folds, seed=run.seed)
    errors = find_label_errors(logits, np.where(known, targets, 0.0), known)
    uses_other_targets = not np.array_equal(logits, calibrated)
    description = (
        f"{run.method.name} of {run.encoder.name}, calibrated by {calibrator.name}, in "
        f"{folds}-fold cross-validation on "
        f"{format_count(n_labelled, noun)}"
        f"{', conditioned on the other targets of each ' + noun if uses_other_targets else ''}"
    )
    return LabelAudit(
        scores.paths, recognizer.names, errors, description, noun, has_images, selection
    )
