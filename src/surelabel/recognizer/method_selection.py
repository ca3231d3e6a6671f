"""Select a method by its cross-validated log loss on annotated images."""

import json
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surelabel.calibration import assign_folds
from surelabel.config import load_run, method_settings_of_run
from surelabel.counts import format_count
from surelabel.data import parse_label_names
from surelabel.encoders import Encoder, load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import FeatureCache, default_feature_cache_folder
from surelabel.progress import Progress
from surelabel.recognizer.calibrating import fit_recognizer_calibration
from surelabel.recognizer.inputs import (
    LabelledInput,
    RecognizerInput,
    align_recognizer_input_labels,
    check_parents_are_annotated,
    resolve_recognizer_targets,
)
from surelabel.recognizer.label_free_methods import check_max_passes
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.method_candidates import (
    MethodCandidate,
    describe_seconds,
    first_sentence_of,
    selectable_methods,
    time_method_candidates,
)
from surelabel.recognizer.method_comparison import MethodComparison, cross_validate_candidate
from surelabel.recognizer.method_selection_record import MethodSelection
from surelabel.recognizer.random_rows import random_sample_rows, random_sample_targets
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.user_warnings import warn_skipped_images
from surelabel.recognizer.vector_normalization import (
    encoder_with_fitted_normalization,
    row_noun,
)
from surelabel.records import Images, LabelledImages, LabelledScores, LabelTree
from surelabel.training import delete_checkpoint

DEFAULT_FOLDS = 5
MIN_DESCRIBED_SECONDS = 5.0  # methods with a longer expected time are announced
DEFAULT_MINUTES = 5.0  # maximum expected time of one method
DEFAULT_MAX_PASSES = 14  # passes of tiles; no measured method with more passes is better


def select_method(
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
    label_tree: LabelTree | None = None,
    checkpoint: str | Path | None = None,
    describe: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Recognizer:
    """Select the method with the lowest cross-validated log loss, and fit it on all images.

    The methods are those that need no annotations, such as ``zero_shot`` and ``tiles``, and those
    that are trained on annotated images from cached features, such as ``linear``. The scores of
    each image are computed by a method that was fitted on the other folds, and calibrated by a
    calibrator that was fitted on the other folds. If a calibration of ``zero_shot`` is shipped with
    the encoder, it is compared too.

    Args:
        source: Images or features with labels.
        targets: Targets of n images and c labels, ``(n, c)``, as for ``Recognizer.fit``.
        names: Labels, length c. If None, the labels of ``source``.
        model: Name of an encoder. If None, the encoder of the settings, or ``tiny-vit``.
        run_file: TOML file with the settings of the run, as for ``load_run``. If None, the default
            settings are used.
        settings: Settings of the run, such as ``seed=1``. Settings of training, such as the loss,
            apply to all methods that are trained.
        folds: Number of cross-validation folds, >= 2.
        minutes: Maximum expected time in minutes of each method, above 0. Methods that would take
            longer are left out. The time is estimated from a few images and training steps.
        max_passes: Maximum number of encoder passes of an image, >= 1. If None, there is no
            maximum.
        device: PyTorch device of the encoder.
        label_tree: Tree of the labels, as for ``Recognizer``. The methods are compared before the
            log-odds are projected to the tree.
        checkpoint: File from which the fit resumes, as for ``Recognizer.fit``. The fits of all
            folds of all methods are stored in files beside it.
        describe: Function called with a text before the methods are compared, with the number of
            methods and the expected time. It is also called with each method that takes long.
        progress: Function called with the number of finished items and the total number of items.
            The items are first encoded images, then folds, for each method. The items of the final
            fit follow.

    Returns:
        Recognizer with the selected method, fitted on all images and calibrated. Its attribute
        ``selection`` contains the results of all methods.

    Raises:
        ConfigError: If the settings contain those of a method, if no method can be compared, or if
            ``folds`` is below 2.
        InputError: If ``source`` has no labels, no positive target, no negative target, or fewer
            images than folds. Also if ``minutes`` or ``max_passes`` is out of range, or if the
            dataset states how its rows were chosen, and no annotated row is random.
        DataError: If no image can be read, or if ``checkpoint`` is damaged.
        UnknownName: If the encoder, or the name of a part in the settings, is unknown.

    Source:
        Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, Journal of the
        Royal Statistical Society B, 1974.

    Example:
        >>> import surelabel as sl
        >>> features = np.random.default_rng(0).normal(size=(20, 4))
        >>> vectors = sl.LabelledFeatures(features, ["lion", "car"], features[:, :2] > 0)
        >>> recognizer = sl.select_method(vectors, model="features:4", settings=["epochs=1"])
        >>> sorted(result.method for result in recognizer.selection.results)
        ['extra_trees', 'gradient_boosting', 'linear']
    """
    compared = compare_methods(
        source,
        targets,
        names=names,
        model=model,
        run_file=run_file,
        settings=settings,
        folds=folds,
        minutes=minutes,
        max_passes=max_passes,
        device=device,
        label_tree=label_tree,
        checkpoint=checkpoint,
        describe=describe,
        progress=progress,
    )
    selected = compared.comparisons[0]
    recognizer = Recognizer(
        selected.run,
        compared.names,
        encoder=compared.encoder,
        cache=compared.cache,
        label_tree=label_tree,
    )
    _fit_selected(recognizer, selected, compared.source, folds, checkpoint, progress)
    recognizer.selection = compared.selection
    return recognizer


@dataclass(frozen=True)
class ComparedMethods:
    """Cross-validated methods, and the data for the fit of the selected method.

    Attributes:
        comparisons: Results of the methods with their out-of-fold scores, lowest log loss first.
        selection: Record of the results.
        source: Images or features with labels.
        names: Labels of the recognizers, length c.
        encoder: Encoder of all methods, with the normalization of the training vectors.
        cache: Cache of features.
    """

    comparisons: Sequence[MethodComparison]
    selection: MethodSelection
    source: LabelledInput
    names: Sequence[str]
    encoder: Encoder
    cache: FeatureCache


def compare_methods(
    source: RecognizerInput,
    targets: npt.ArrayLike | None = None,
    *,
    names: Sequence[str] | None,
    model: str | None,
    run_file: str | Path | None,
    settings: Sequence[str],
    folds: int,
    minutes: float,
    max_passes: int | None,
    device: str,
    label_tree: LabelTree | None = None,
    checkpoint: str | Path | None = None,
    describe: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> ComparedMethods:
    """Return the cross-validated results of the methods that :func:`select_method` compares.

    The arguments and errors are those of :func:`select_method`. No method is fitted on all images.
    """
    _check_selection_limits(minutes, max_passes)
    overrides = [*settings, *([f"encoder.name={json.dumps(model)}"] if model else [])]
    check_no_method_settings(run_file, overrides)
    run = load_run(run_file, overrides)
    resolved, labels = _resolve_selection_input(source, targets, names)
    n_images = _check_selection_targets(resolved, labels, label_tree, folds, run.seed)
    encoder = load_encoder(run.encoder.name, device=device, **run.encoder.settings)
    encoder = encoder_with_fitted_normalization(encoder, resolved)
    cache = FeatureCache(default_feature_cache_folder())
    with warnings.catch_warnings():  # the fit of the selected method emits them
        warnings.simplefilter("ignore", UserWarning)
        recognizers, incompatible = _make_recognizers(
            run_file, overrides, labels, label_tree, encoder, cache
        )
        candidates, left_out = time_method_candidates(
            resolved, recognizers, folds=folds, minutes=minutes, max_passes=max_passes
        )
        left_out |= incompatible
        _check_candidates(candidates, left_out)
        describe = describe or (lambda _sentence: None)
        describe(_describe_comparison(candidates, resolved, folds, encoder))
        comparisons = list[MethodComparison]()
        for candidate in candidates:
            if candidate.expected_seconds > MIN_DESCRIBED_SECONDS:
                describe(_describe_candidate(candidate))
            comparisons += cross_validate_candidate(
                candidate, resolved, folds, checkpoint=checkpoint, progress=progress
            )
    comparisons.sort(key=lambda comparison: comparison.result.log_loss)
    results = tuple(comparison.result for comparison in comparisons)
    selection = MethodSelection(results, left_out, n_images, folds, noun=row_noun(encoder))
    return ComparedMethods(comparisons, selection, resolved, labels, encoder, cache)


def _check_selection_limits(minutes: float, max_passes: int | None) -> None:
    """Check that the limits of the time and of the encoder passes are in range.

    Raises:
        InputError: If a limit is out of range.
    """
    if not 0 < minutes < math.inf:
        raise InputError(
            f"minutes must be positive and finite; got {minutes}. Give a value such as the "
            "default, 5."
        )
    if max_passes is not None:
        check_max_passes(max_passes)


def check_no_method_settings(run_file: str | Path | None, settings: Sequence[str]) -> None:
    """Check that the settings contain no section of a method.

    Raises:
        ConfigError: If they contain the name or another setting of a method.
    """
    section = method_settings_of_run(run_file, settings)
    if section:
        key, value = next(iter(section.items()))
        raise ConfigError(
            "Model selection compares all methods with their default settings; got "
            f"method.{key}={value}. Choose a method (method.name), or remove the setting."
        )


def _resolve_selection_input(
    source: RecognizerInput, targets: npt.ArrayLike | None, names: Sequence[str] | None
) -> tuple[LabelledInput, list[str]]:
    """Return the annotated images or features, and the labels.

    Raises:
        InputError: If there are no targets.
    """
    resolved = resolve_recognizer_targets(source, targets, names or ())
    if isinstance(resolved, Images) or not len(resolved.names):
        raise InputError(
            f"Model selection requires annotated images; got {len(resolved)} images without "
            "labels. Give LabelledImages, or targets and names."
        )
    return resolved, list(resolved.names if names is None else names)


def _make_recognizers(
    run_file: str | Path | None,
    settings: Sequence[str],
    labels: Sequence[str],
    label_tree: LabelTree | None,
    encoder: Encoder,
    cache: FeatureCache,
) -> tuple[list[Recognizer], dict[str, str]]:
    """Return a recognizer for each method, and the reasons why other methods cannot be used."""
    recognizers, incompatible = list[Recognizer](), dict[str, str]()
    for name in selectable_methods():
        run = load_run(run_file, [*settings, f"method.name={name}"])
        try:
            recognizers.append(
                Recognizer(run, labels, encoder=encoder, cache=cache, label_tree=label_tree)
            )
        except (ConfigError, InputError) as error:
            incompatible[name] = first_sentence_of(error)
    _check_candidates(recognizers, incompatible)
    return recognizers, incompatible


def _check_candidates(candidates: Sequence[object], left_out: dict[str, str]) -> None:
    """Check that at least one method can be compared.

    Raises:
        ConfigError: If there is no candidate.
    """
    if not candidates:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ConfigError(
            f"The comparison needs at least one method; all methods are left out ({reasons}). "
            "Increase --minutes or --max-passes, or choose a method with --method."
        )


def _check_selection_targets(
    source: LabelledInput,
    labels: Sequence[str],
    label_tree: LabelTree | None,
    folds: int,
    seed: int,
) -> int:
    """Check the targets before any image is encoded; return the number of annotated images.

    Raises:
        InputError: If there are fewer images than folds, or if the known targets are all positive
            or all negative. Also if the dataset states how its rows were chosen, and none is
            random, or if a label of the tree is not in ``labels``.
        DataError: If a positive label has a negative ancestor in an image.
        ConfigError: If ``folds`` is below 2.
    """
    names, aliases = parse_label_names(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        labelled = align_recognizer_input_labels(source, names, aliases, label_tree)
        check_parents_are_annotated(labelled, label_tree)
        random_sample_rows(source, "The calibration")  # raises an error; used after the selection
    assign_folds(labelled.known, folds, np.random.default_rng(seed))
    values = labelled.targets[labelled.known]
    if not (values > 0).any() or not (values < 1).any():
        kind = "positive" if (values < 1).any() else "negative"
        raise InputError(
            f"Model selection requires positive and negative targets; got no {kind} target in "
            f"{len(labelled)} images. Check the annotations and the labels."
        )
    return int(labelled.known.any(axis=1).sum())


def _describe_comparison(
    candidates: Sequence[MethodCandidate], source: LabelledInput, folds: int, encoder: Encoder
) -> str:
    """Return a sentence with the number of methods and the expected time."""
    seconds = sum(candidate.expected_seconds for candidate in candidates)
    return (
        f"Comparing {format_count(len(candidates), 'method')} with {folds} folds on "
        f"{format_count(len(source), row_noun(encoder))} takes about {describe_seconds(seconds)}."
    )


def _describe_candidate(candidate: MethodCandidate) -> str:
    """Return a line with a method and its expected time."""
    return (
        f"{candidate.recognizer.run.method.name}: about "
        f"{describe_seconds(candidate.expected_seconds)}"
    )


def _fit_selected(
    recognizer: Recognizer,
    selected: MethodComparison,
    source: LabelledInput,
    folds: int,
    checkpoint: str | Path | None,
    progress: Progress | None,
) -> None:
    """Fit the selected method on all images, and calibrate it on the out-of-fold scores.

    If the method is not trained, the checkpoints of other methods are deleted here; otherwise
    ``Recognizer.save`` deletes them.
    """
    scores, learns_from = selected.scores, recognizer.method.learns_from
    if learns_from == "nothing":
        warn_skipped_images(scores.skipped, len(source))
    elif learns_from == "images":
        recognizer.fit(_without_labels(source), progress=progress)
    else:
        recognizer.fit(source, checkpoint=checkpoint, progress=progress)
    if checkpoint and learns_from != "labels":
        delete_checkpoint(checkpoint)
    if selected.is_calibrated_by_folds:
        is_used = np.isin(scores.rows, random_sample_rows(source, "The calibration"))
        raw, vectors = scores.raw[is_used], scores.vectors[is_used]
        labels = recognizer.names, recognizer.aliases, recognizer.label_tree
        targets, known = random_sample_targets(
            source, labels, scores.rows[is_used], scores.targets[is_used], scores.known[is_used]
        )
        recognizer.calibration = fit_recognizer_calibration(
            recognizer.run,
            raw,
            targets,
            known,
            vectors=vectors,
            names_with_aliases=recognizer.names_with_aliases,
            folds=0 if learns_from == "nothing" else folds,
            noun=row_noun(recognizer.encoder),
            tree=LabelTreeProjection.of_labels(recognizer.label_tree, recognizer.names),
        )
        used = source.take(scores.rows[is_used])
        recognizer.store_cross_fitted_scores(used, raw, vectors, targets, known)


def _without_labels(source: LabelledInput) -> RecognizerInput:
    """Return images, vectors or scores without their labels."""
    if isinstance(source, LabelledImages):
        return Images(source.paths)
    return source.without_labels() if isinstance(source, LabelledScores) else source.features
