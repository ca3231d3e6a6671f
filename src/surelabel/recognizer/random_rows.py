"""Select the rows of a random sample, which calibration, evaluation and guarantees require."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.data.permanent_random_numbers import permanent_random_numbers, row_identifiers
from surelabel.data.sample_targets import with_sample_targets
from surelabel.errors import InputError
from surelabel.recognizer.inputs import LabelledInput, align_recognizer_input_labels
from surelabel.records import LabelTree

_THINNING = "thinning"  # key of the permanent random numbers


def random_sample_rows(source: LabelledInput, purpose: str) -> npt.NDArray[np.int64]:
    """Return the indices of the annotated rows that are a random sample with equal probabilities.

    If the source does not state how its rows were chosen, all rows are returned. Otherwise, only
    annotated random rows are returned. If their inclusion probabilities differ, each row is kept
    with the probability (smallest inclusion probability) / (inclusion probability of the row), so
    that all rows have the same inclusion probability. A warning states the numbers of rows.

    Targets of random rows that were not annotated for the random sample do not count; see
    :func:`surelabel.data.sample_targets.with_sample_targets`. The caller must not use them.

    Args:
        source: Images, vectors or scores with labels.
        purpose: Subject of the warning, such as ``The calibration``.

    Raises:
        InputError: If no random row is annotated.
    """
    selection = source.row_selection
    if selection is None:
        return np.arange(len(source))
    is_annotated = with_sample_targets(source).known.any(axis=1)
    is_sampled = selection.is_random & is_annotated
    if not is_sampled.any():
        raise InputError(
            f"{purpose} requires annotated rows that were chosen at random; got none among "
            f"{format_count(int(is_annotated.sum()), 'annotated row')}. Choose random rows with "
            "`surelabel label-next DATASET --random-share 1`, and annotate these rows."
        )
    probability = selection.inclusion_probability
    smallest = probability[is_sampled].min()
    random_numbers = permanent_random_numbers(row_identifiers(source), _THINNING)
    is_kept = is_sampled & (random_numbers * probability <= smallest)
    notes = [
        f"{purpose} uses {format_count(int(is_kept.sum()), 'annotated row')} that "
        f"{'was' if is_kept.sum() == 1 else 'were'} chosen at random."
    ]
    if n_others := int((is_annotated & ~selection.is_random).sum()):
        notes.append(
            f"{format_count(n_others, 'annotated row')} {'is' if n_others == 1 else 'are'} left "
            f"out, because {'it was' if n_others == 1 else 'they were'} not chosen at random."
        )
    if n_thinned := int((is_sampled & ~is_kept).sum()):
        notes.append(
            f"{format_count(n_thinned, 'random row')} {'is' if n_thinned == 1 else 'are'} left out "
            "to make the inclusion probabilities equal."
        )
    if n_missing := int((selection.is_random & ~is_annotated).sum()):
        no_labels = "no labels" if selection.sample_targets is None else "not been annotated"
        notes.append(
            f"{format_count(n_missing, 'random row')} {'has' if n_missing == 1 else 'have'} "
            f"{no_labels}, so the random sample is incomplete. Annotate all random rows."
        )
    if len(notes) > 1:
        warnings.warn(" ".join(notes), stacklevel=3)
    return np.flatnonzero(is_kept)


def take_random_rows(source: LabelledInput, purpose: str) -> LabelledInput:
    """Select the rows of :func:`random_sample_rows`; return the source itself if all are used.

    The rows have only the targets that were annotated for the random sample.

    Args:
        source: Images, vectors or scores with labels.
        purpose: Subject of the warning, such as ``The calibration``.

    Raises:
        InputError: If no random row is annotated.

    Example:
        >>> import surelabel as sl
        >>> selection = sl.RowSelection(["random", "expected_gain"], [0.5, np.nan])
        >>> images = sl.LabelledImages(["a.jpg", "b.jpg"], ["dog"], [[1], [0]])
        >>> take_random_rows(images, "The calibration") is images
        True
    """
    if source.row_selection is None:
        return source
    return with_sample_targets(source).take(random_sample_rows(source, purpose))


def random_sample_targets(
    source: LabelledInput,
    recognizer_labels: tuple[Sequence[str], Mapping[str, Sequence[str]], LabelTree | None],
    rows: npt.NDArray[np.int64],
    targets: Array,
    known: Flags,
) -> tuple[Array, Flags]:
    """Return the targets of some rows, with only the sample's targets for random rows.

    Args:
        source: Images, vectors or scores with labels.
        recognizer_labels: Labels of the c columns of ``targets``, their aliases, and their tree.
        rows: Indices of m rows of the source.
        targets: All targets of these rows, ``(m, c)``.
        known: Mask of the known targets, ``(m, c)``.

    Returns:
        Targets and mask, each ``(m, c)``: ``targets`` and ``known`` themselves, if the source
        states no targets of the sample.
    """
    if source.row_selection is None or source.row_selection.sample_targets is None:
        return targets, known
    with warnings.catch_warnings():  # the alignment of all targets emitted them
        warnings.simplefilter("ignore", UserWarning)
        aligned = align_recognizer_input_labels(with_sample_targets(source), *recognizer_labels)
    return aligned.targets[rows], aligned.known[rows]
