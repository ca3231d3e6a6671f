"""Fit the calibrator of a recognizer on labelled or unlabelled images."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from surelabel.arrays import Array, Flags
from surelabel.calibration import (
    Calibrator,
    CalibratorSelection,
    SelectsCalibrator,
    UsesLabelTexts,
    calibrator_for_images,
    cross_fitted_logits,
)
from surelabel.config import Run
from surelabel.counts import format_count
from surelabel.decisions import ValidationRecord, record_validation
from surelabel.encoders import Encoder, prompt_templates, reference_names
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.features import FeatureCache, encode_image_files, encode_views
from surelabel.label_aliases import split_label_aliases
from surelabel.methods.text_scoring.text_scorer import BACKGROUNDS, encode_synonyms_for_text_scorer
from surelabel.progress import Progress
from surelabel.pseudolabels import part_presence_probabilities
from surelabel.recognizer.calibration_record import CalibrationRecord, calibrator_key
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.records.calibration_description import WITHOUT_LABELS
from surelabel.shapes import check_shapes
from surelabel.views import RegionLayout

RECORD_FOLDS = 5  # folds of the cross-fitted validation record
MIN_RECORD_IMAGES = 20  # fewest images with known labels for a validation record
WINDOW_ORIGINS = (0.0, 0.25, 0.5)
WINDOWS = RegionLayout([(x, y, x + 0.5, y + 0.5) for y in WINDOW_ORIGINS for x in WINDOW_ORIGINS])
IMAGES_PER_BLOCK = 256  # images whose windows are compared with all texts at once


def check_recognizer_calibrator(run: Run, raw_score_entry: str | None) -> None:
    """Check that the calibrator of a run accepts the scores of the method.

    Raw scores are scores without a link that converts them to log-odds. Some calibrators accept
    only log-odds.

    Args:
        run: Run whose calibrator is selected.
        raw_score_entry: Key of the loss or method that computes raw scores. If None, the calibrator
            receives log-odds.

    Raises:
        ConfigError: If the calibrator does not accept raw scores.
    """
    name = run.calibrator.name
    if raw_score_entry and not run.entry("calibrator")().accepts_raw_scores:
        raise ConfigError(
            f"calibrator.name={name} requires log-odds; got raw scores of {raw_score_entry}, "
            "which are not log-odds. Use calibrator.name=platt."
        )


def select_run_calibrator(
    run: Run, raw: Array, targets: Array, known: Flags
) -> CalibratorSelection:
    """Return the calibrator of a run, or the calibrator that it selects on labelled images.

    Args:
        run: Run whose calibrator is selected.
        raw: Log-odds or raw scores, ``(n, c)`` for n images and c labels.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.

    Raises:
        InputError: If the calibrator selects another calibrator, and no known target is positive or
            no known target is negative.
    """
    calibrator = run.entry("calibrator")()
    if isinstance(calibrator, SelectsCalibrator):
        return calibrator.select(raw, targets, known)
    return CalibratorSelection(run.calibrator.name, run.entry("calibrator"))


def fit_recognizer_calibration(
    run: Run,
    raw: Array,
    targets: Array,
    known: Flags,
    *,
    vectors: npt.NDArray[np.floating] | None = None,
    names_with_aliases: Sequence[str] = (),
    folds: int = 0,
    noun: str = "image",
    tree: LabelTreeProjection | None = None,
) -> CalibrationRecord:
    """Fit the calibrator of a run on labelled images and compute the validation record.

    With fewer than 20 images with a known target, there is no validation record. A calibrator
    such as ``cross_validated`` selects one of several calibrators on all images. The selected
    calibrator is fitted and described. For the validation record, the selection is repeated in each
    fold, so that the log-odds of an image do not depend on its targets.

    Args:
        run: Run with the calibrator and the seed.
        raw: Log-odds, or raw scores if there is no link, ``(n, c)`` for n images and c labels.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        vectors: Vectors of the images, ``(n, d)``. If None, there are no vectors.
        names_with_aliases: Labels, length c, for calibrators that use text vectors. If empty, such
            a calibrator keeps only its shared parameters for other labels.
        folds: Number of folds if ``raw`` contains out-of-fold scores, otherwise 0. The number is
            only used in the description of the calibration.
        noun: Noun of the images in the description of the calibration.
        tree: Projection of the log-odds to a tree of labels. If None, there is no tree.

    Raises:
        InputError: If no known target is positive, or no known target is negative.
        ConfigError: If the calibrator requires vectors and ``vectors`` is None.
    """
    selection = select_run_calibrator(run, raw, targets, known)
    n_images = int(known.any(axis=1).sum())
    calibrator = calibrator_for_images(selection.make_calibrator(), vectors)
    calibrator.fit(raw, targets, known)
    record = None
    if n_images >= MIN_RECORD_IMAGES:
        logits = cross_fitted_logits(
            run.entry("calibrator"),
            raw,
            targets,
            known,
            vectors=vectors,
            folds=RECORD_FOLDS,
            seed=run.seed,
        )
        if tree is not None:
            tree = tree.measured(logits, targets, known)
            logits = tree.logits(logits)
        record = record_validation(logits, targets, known)
    about = _describe_calibrator_selection(selection, calibrator)
    description = f"{about} on {format_count(n_images, f'labelled {noun}')}"
    if folds:
        description += f" ({folds}-fold cross-validation)"
    return _make_calibration_record(
        selection, calibrator, description, record, names_with_aliases, tree
    )


def _describe_calibrator_selection(selection: CalibratorSelection, calibrator: Calibrator) -> str:
    """Return a text with a calibrator, how it was selected, and the calibrator of new labels."""
    if not selection.log_losses:
        return selection.name
    text = f"{selection.name} (selected by log loss"
    shared = calibrator.shared_calibrator()
    if shared is not None and not calibrator.shares_parameters:
        text += f"; new labels use its shared {calibrator_key(shared)}"
    return f"{text})"


def _make_calibration_record(
    selection: CalibratorSelection,
    calibrator: Calibrator,
    description: str,
    record: ValidationRecord | None,
    names_with_aliases: Sequence[str],
    tree: LabelTreeProjection | None,
) -> CalibrationRecord:
    """Return the record of a calibrator, without the vectors of the calibration images."""
    fit_labels = tuple(names_with_aliases) if isinstance(calibrator, UsesLabelTexts) else ()
    calibrator = calibrator_for_images(calibrator, None)
    return CalibrationRecord(
        selection.name,
        calibrator,
        description,
        record,
        fit_labels=fit_labels,
        log_losses=selection.log_losses,
        tree=tree,
    )


def fit_recognizer_calibration_without_labels(
    run: Run,
    encoder: Encoder,
    names_with_aliases: Sequence[str],
    raw: Array,
    paths: Sequence[str],
    *,
    image_vectors: npt.NDArray[np.floating] | None = None,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
    tree: LabelTreeProjection | None = None,
) -> CalibrationRecord:
    """Fit the calibrator of a run on unlabelled images, for the scores of any method.

    The targets are pseudo-labels, computed from softmax probabilities of the encoder over the names
    and common reference words. The softmax probabilities are computed for the whole image and for
    nine overlapping windows with half the width and height of the image. The validation record
    contains expected counts, computed from the calibrated probabilities, because the true counts
    are unknown. With fewer than 20 readable images, there is no validation record.

    Args:
        run: Run with the calibrator, the prompt templates and the background words, which are
            additional reference words.
        encoder: Encoder of images and texts.
        names_with_aliases: One text per label, length c. Reference words that equal a label or an
            alias are left out. Other synonyms are not recognized: write ``sofa|couch`` to leave out
            both reference words.
        raw: Log-odds of the images in ``paths``, or raw scores if there is no link, ``(n, c)``.
        paths: Paths of the images, length n; unreadable images are left out.
        image_vectors: Vectors of the images for the calibrator, ``(n, d)``. If None, there are no
            vectors.
        cache: Cache of image features.
        progress: Function called with the number of encoded images and the total number of images,
            first while whole images are encoded, then while windows are encoded.
        tree: Projection of the log-odds to a tree of labels. If None, there is no tree.

    Raises:
        InputError: If ``raw`` does not have one row per image and one column per label.
        DataError: If no image can be read.
        ConfigError: If the encoder has no text encoder, or accepts no images, or if the calibrator
            requires vectors and ``image_vectors`` is None.

    Source:
        None; ours. The page docs/calibrators.md compares this calibration with calibration on
        labelled images, sewn images and mixtures.
    """
    raw = np.asarray(raw, dtype=np.float64)
    check_shapes(raw=(raw, "n c"))
    if raw.shape != (len(paths), len(names_with_aliases)):
        raise InputError(
            f"raw must have the shape ({len(paths)}, {len(names_with_aliases)}), with one row per "
            f"image and one column per label; got {raw.shape}. Give the scores of all images and "
            "labels."
        )
    if isinstance(encoder, ExportedModel):
        raise ConfigError(
            f"A calibration without labels requires an encoder with a text encoder; got "
            f"{encoder.name}, an exported recognizer. Calibrate it on annotated images."
        )
    rows, vectors = _encode_windows_for_calibrating(encoder, paths, cache, progress)
    targets = _presence_probabilities_for_calibrating(run, encoder, names_with_aliases, vectors)
    selection = _calibrator_without_labels(run)
    calibrator = calibrator_for_images(
        selection.make_calibrator(), image_vectors, np.asarray(rows, dtype=np.int64)
    ).fit(raw[rows], targets)
    logits = calibrator.logits(raw[rows])
    logits = tree.logits(logits) if tree else logits
    enough = len(rows) >= MIN_RECORD_IMAGES
    record = record_validation(logits, expit(logits)) if enough else None
    images = format_count(len(rows), "image")
    description = f"{selection.name} on pseudo-labels of {images} {WITHOUT_LABELS}"
    calibration = _make_calibration_record(
        selection, calibrator, description, record, names_with_aliases, tree
    )
    return replace(calibration, uses_labels=False)


def _calibrator_without_labels(run: Run) -> CalibratorSelection:
    """Return the calibrator of a run, or a shared calibrator if the run selects one by labels."""
    calibrator = run.entry("calibrator")()
    if isinstance(calibrator, SelectsCalibrator):
        return calibrator.select_shared()
    return CalibratorSelection(run.calibrator.name, run.entry("calibrator"))


def _encode_windows_for_calibrating(
    encoder: Encoder,
    paths: Sequence[str],
    cache: FeatureCache | None,
    progress: Progress | None,
) -> tuple[list[int], Tensor]:
    """Return the row numbers and the unit vectors ``(n, t, d)`` of n readable images.

    Each image has t vectors of length d: one vector of the whole image, and t - 1 vectors of
    windows.

    Raises:
        DataError: If no image can be read.
    """
    images = encode_image_files(encoder, paths, cache=cache, progress=progress)
    readable_paths = [paths[row] for row in images.rows]
    windows = encode_views(
        encoder, readable_paths, WINDOWS, hashes=images.hashes, cache=cache, progress=progress
    )
    readable = [i for i in range(len(readable_paths)) if i not in windows.unreadable]
    if not readable:
        raise DataError(
            "The second pass over the images must read at least one of "
            f"{format_count(len(readable_paths), 'image')}; all images failed, such as "
            f"{readable_paths[0]}. Check the disk and run again."
        )
    vectors = torch.cat([images.features.pooled[:, None], windows.views], dim=1)
    return images.rows[readable].tolist(), vectors[readable]


def _presence_probabilities_for_calibrating(
    run: Run, encoder: Encoder, names_with_aliases: Sequence[str], vectors: Tensor
) -> Array:
    """Compute the probabilities ``(n, c)`` of c labels in n images, from vectors of windows."""
    templates = prompt_templates(run.method.settings.get("templates", "one"))
    label_texts = encode_synonyms_for_text_scorer(encoder, names_with_aliases, templates).cpu()
    reference_words = _reference_words_for_calibrating(run, names_with_aliases)
    reference_texts = encoder.encode_labels(reference_words, templates).cpu()
    blocks = [
        part_presence_probabilities(
            *(
                encoder.scale * (block @ texts.T).double()
                for texts in (label_texts, reference_texts)
            )
        )
        for block in vectors.split(IMAGES_PER_BLOCK)
    ]
    return torch.cat(blocks).numpy()


def _reference_words_for_calibrating(run: Run, names_with_aliases: Sequence[str]) -> list[str]:
    """Return the reference words and the background words of the run, except the labels."""
    background = run.method.settings.get("background", ())
    run_words = () if isinstance(background, str) else background
    words = (*reference_names(), *BACKGROUNDS["usual"], *run_words)
    names = {alias.casefold() for name in names_with_aliases for alias in split_label_aliases(name)}
    return [word for word in dict.fromkeys(words) if word.casefold() not in names]
