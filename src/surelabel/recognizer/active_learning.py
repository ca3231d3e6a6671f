"""Choose the rows to annotate next, at random and by a strategy (active learning)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from surelabel.arrays import Flags
from surelabel.counts import format_count
from surelabel.data.facility_location import facility_location_order
from surelabel.data.permanent_random_numbers import permanent_random_numbers, row_identifiers
from surelabel.data.random_sample_growth import RandomSample, grow_random_sample
from surelabel.encoders import Encoder, load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import (
    EncodedImages,
    FeatureCache,
    default_feature_cache_folder,
    encode_image_files,
    normalize_precomputed_vectors,
)
from surelabel.progress import Progress
from surelabel.recognizer.annotation_batch import AnnotationBatch
from surelabel.recognizer.annotation_pool import annotation_pool
from surelabel.recognizer.inputs import LabelledInput, RecognizerInput
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.user_warnings import warn_skipped_images
from surelabel.recognizer.vector_normalization import (
    encoder_with_fitted_normalization,
    image_vector_normalization,
    precomputed_vectors,
)
from surelabel.records import (
    RANDOM_ROW,
    LabelledFeatures,
    LabelledScores,
    Predictions,
    RowIndices,
    RowSelection,
)

REPRESENTATIVE = "representative"  # key of the strategy in ``chosen_by``
DEFAULT_RANDOM_SHARE = 0.2
DEFAULT_ENCODER = "tiny-vit"


def label_next(
    source: RecognizerInput,
    *,
    count: int,
    pool: RecognizerInput | None = None,
    names: Sequence[str] | None = None,
    random_share: float = DEFAULT_RANDOM_SHARE,
    annotated_at_random: bool = False,
    model: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> AnnotationBatch:
    """Choose the unlabelled rows to annotate next: random rows, and rows that represent all rows.

    The random sample consists of the rows with the smallest permanent random numbers, and grows
    from call to call. All random rows thus have the same inclusion probability, which does not
    depend on earlier annotations. ``calibrate``, ``evaluate`` and guarantees use only random rows.
    The other rows are chosen by greedy facility location on the image vectors. Each of these rows
    is the one that most reduces the mean distance of all images to the nearest chosen or annotated
    image. If no row has labels, all chosen rows are random.

    Args:
        source: Annotated images, vectors or scores, whose rows without a known target can be
            chosen. If the images have no labels, the result contains only the chosen images.
        count: Number of rows to choose, >= 1. If fewer rows are unlabelled, all of them are chosen.
            With ``random_share=1``, fewer rows are chosen if sampled rows already have labels.
        pool: Further images without labels, as paths or a folder. If None, only rows of
            ``source`` can be chosen.
        names: Labels, length c. If None, the labels of ``source``.
        random_share: Fraction of the rows that are chosen at random, in [0, 1].
        annotated_at_random: Whether the annotated rows are a random sample of all rows, for a
            dataset without the column ``chosen_by``. If False, no annotated row is random.
        model: Encoder of the image vectors, or folder of a saved recognizer. The batch contains the
            probabilities of a saved recognizer. If None, ``tiny-vit`` for images.
        seed: Seed of the permanent random numbers. If rows are added to the pool, give the seed of
            the first call.
        device: PyTorch device of the encoder.
        progress: Function called with the number of encoded images and the number of all images.

    Raises:
        InputError: If all rows have labels or were chosen before, or if no labels are given. Also
            if ``annotated_at_random`` is given for a dataset with the column ``chosen_by``, or if
            the random rows of ``source`` cannot be extended to added rows.
        ConfigError: If ``count`` or ``random_share`` is out of range.
        DataError: If no image can be read.

    Source:
        Facility location: see :func:`facility_location_order`. Permanent random numbers: Ohlsson,
        Coordination of samples using permanent random numbers, in Business Survey Methods, 1995.

    Example:
        >>> import surelabel as sl
        >>> rng = np.random.default_rng(0)
        >>> targets = np.full((100, 1), np.nan)
        >>> targets[:20] = rng.integers(0, 2, (20, 1))
        >>> vectors = sl.LabelledFeatures(rng.normal(size=(100, 2)), ["lion"], targets)
        >>> batch = sl.label_next(vectors, count=10)
        >>> len(batch), batch.n_pool, set(batch.chosen_by) <= {"random", "representative"}
        (10, 80, True)
    """
    _check_label_next_settings(count, random_share)
    rows, n_table = annotation_pool(source, pool, names)
    selection = _entries_before(rows, annotated_at_random=annotated_at_random)
    is_annotated = rows.known.any(axis=1)
    is_pending = ~is_annotated & np.array([key != "" for key in selection.chosen_by], dtype=bool)
    is_pool = ~is_annotated & ~is_pending
    if not is_pool.any():
        raise InputError(
            f"label-next requires rows without labels; got {format_count(len(rows), 'row')} that "
            "have labels or were chosen before. Add images with --pool, or add rows without labels "
            "to the dataset."
        )
    n_random = round(count * (random_share if is_annotated.any() else 1))
    sample = grow_random_sample(
        permanent_random_numbers(row_identifiers(rows), f"label-next {seed}"),
        selection,
        is_pool,
        n_more=n_random,
        max_new=count,
    )
    chosen = np.flatnonzero(sample.is_sampled & is_pool)
    recognizer = _load_saved_recognizer(model, device)
    if n_random < count and len(chosen) < count:
        encoder = recognizer.encoder if recognizer else _load_encoder(model, rows, device)
        represented = _representative_rows(
            rows,
            encoder,
            ~is_pool | sample.is_sampled,
            count - len(chosen),
            seed=seed,
            progress=progress,
        )
        chosen = np.concatenate([chosen, represented])
    is_kept = np.arange(len(rows)) < n_table
    is_kept[chosen] = True
    selected = _with_entries(rows, _entries_after(selection, sample, chosen))
    return AnnotationBatch(
        selected.take(np.flatnonzero(is_kept)),
        (np.cumsum(is_kept) - 1)[chosen].tolist(),
        _predict_rows(recognizer, selected.take(chosen)),
        int(is_pool.sum()),
        int(is_pending.sum()),
        "row" if type(rows) is LabelledFeatures else "image",
    )


def _check_label_next_settings(count: int, random_share: float) -> None:
    """Check the number of rows and the share of random rows.

    Raises:
        ConfigError: If the number or the share is out of range.
    """
    if count < 1:
        raise ConfigError(f"count must be >= 1; got {count}. Give the number of rows to annotate.")
    if not 0 <= random_share <= 1:
        raise ConfigError(
            f"random_share must be in [0, 1]; got {random_share}. Give a value such as the "
            f"default, {DEFAULT_RANDOM_SHARE}."
        )


def _entries_before(rows: LabelledInput, *, annotated_at_random: bool) -> RowSelection:
    """Return how the rows were chosen before; annotated rows can be declared random.

    Raises:
        InputError: If rows are declared random, and the dataset states how its rows were chosen.
    """
    if rows.row_selection is None:
        is_random: Flags = np.asarray(rows.known.any(axis=1) & annotated_at_random)
        keys = [RANDOM_ROW if flag else "" for flag in is_random.tolist()]
        return RowSelection(keys, np.where(is_random, is_random.mean(), np.nan))
    if annotated_at_random:
        raise InputError(
            "Annotated rows can be declared random only if the dataset has no column chosen_by; "
            "got a dataset with this column. Remove --annotated-at-random."
        )
    return rows.row_selection


def _load_saved_recognizer(model: str | None, device: str) -> Recognizer | None:
    """Return the saved recognizer of a folder, or None if the model is an encoder."""
    if model is None or not Path(model).is_dir():
        return None
    return Recognizer.load(model, device=device)


def _load_encoder(model: str | None, rows: LabelledInput, device: str) -> Encoder:
    """Return the encoder of images, vectors or scores, with a normalization fitted on the rows."""
    if isinstance(rows, LabelledScores):
        name, settings = f"scores:{rows.kind}", {"columns": [*rows.columns], "views": rows.views}
    elif isinstance(rows, LabelledFeatures):
        name, settings = f"features:{rows.features.shape[1]}", {}
    else:
        name, settings = model or DEFAULT_ENCODER, {}
    return encoder_with_fitted_normalization(load_encoder(name, device=device, **settings), rows)


def _representative_rows(
    rows: LabelledInput,
    encoder: Encoder,
    is_selected: Flags,
    count: int,
    *,
    seed: int,
    progress: Progress | None,
) -> RowIndices:
    """Return rows that represent all rows, by facility location on the image vectors.

    Args:
        rows: All n rows.
        encoder: Encoder of the image vectors.
        is_selected: Mask of the rows that are annotated or chosen already, ``(n,)``.
        count: Number of rows to choose.
        seed: Seed of the sample of rows over which gains are computed.
        progress: Function called with the number of encoded images and the number of all images.

    Raises:
        DataError: If no image can be read.
    """
    encoded = _encode_rows(rows, encoder, progress)
    warn_skipped_images(encoded.skipped, len(rows), "images")
    selected = is_selected[encoded.rows]
    order = facility_location_order(
        encoded.features.pooled.double().cpu().numpy(),
        np.flatnonzero(selected),
        np.flatnonzero(~selected),
        count,
        seed=seed,
    )
    readable: RowIndices = encoded.rows
    return readable[order]


def _encode_rows(rows: LabelledInput, encoder: Encoder, progress: Progress | None) -> EncodedImages:
    """Return the pooled vectors of images, or the normalized vectors or scores of rows."""
    if isinstance(rows, LabelledFeatures):
        return normalize_precomputed_vectors(
            precomputed_vectors(encoder, rows),
            width=encoder.width,
            normalization=image_vector_normalization(encoder),
        )
    cache = FeatureCache(default_feature_cache_folder())
    paths = [str(path) for path in rows.paths]
    return encode_image_files(encoder, paths, cache=cache, progress=progress)


def _entries_after(
    selection: RowSelection, sample: RandomSample, chosen: RowIndices
) -> RowSelection:
    """Return how all rows were chosen, including the new random rows and the chosen rows."""
    keys = ["" if key == RANDOM_ROW else key for key in selection.chosen_by]
    for row in chosen:
        keys[row] = REPRESENTATIVE
    for row in np.flatnonzero(sample.is_sampled):
        keys[row] = RANDOM_ROW
    return RowSelection(keys, np.where(sample.is_sampled, sample.probability, np.nan))


def _with_entries(rows: LabelledInput, selection: RowSelection) -> LabelledInput:
    if isinstance(rows, LabelledScores):
        return rows.with_row_selection(selection)
    return replace(rows, row_selection=selection)


def _predict_rows(recognizer: Recognizer | None, rows: LabelledInput) -> Predictions | None:
    """Return the predictions of a saved recognizer, if it is calibrated."""
    if recognizer is None or recognizer.calibrated_on is None:
        return None
    return recognizer.predict(rows)
