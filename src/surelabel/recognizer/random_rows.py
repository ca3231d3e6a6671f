"""Select the rows of a random sample, which calibration, evaluation and guarantees require."""

import warnings

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.data.permanent_random_numbers import permanent_random_numbers, row_identifiers
from surelabel.errors import InputError
from surelabel.recognizer.inputs import LabelledInput

_THINNING = "thinning"  # key of the permanent random numbers


def random_sample_rows(source: LabelledInput, purpose: str) -> npt.NDArray[np.int64]:
    """Return the indices of the annotated rows that are a random sample with equal probabilities.

    If the source does not state how its rows were chosen, all rows are returned. Otherwise, only
    annotated random rows are returned. If their inclusion probabilities differ, each row is kept
    with the probability (smallest inclusion probability) / (inclusion probability of the row), so
    that all rows have the same inclusion probability. A warning states the numbers of rows.

    Args:
        source: Images, vectors or scores with labels.
        purpose: Subject of the warning, such as ``The calibration``.

    Raises:
        InputError: If no random row is annotated.
    """
    selection = source.row_selection
    if selection is None:
        return np.arange(len(source))
    is_annotated = source.known.any(axis=1)
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
        notes.append(
            f"{format_count(n_missing, 'random row')} {'has' if n_missing == 1 else 'have'} no "
            "labels, so the random sample is incomplete. Annotate all random rows."
        )
    if len(notes) > 1:
        warnings.warn(" ".join(notes), stacklevel=3)
    return np.flatnonzero(is_kept)


def take_random_rows(source: LabelledInput, purpose: str) -> LabelledInput:
    """Select the rows of :func:`random_sample_rows`; return the source itself if all are used.

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
    return source.take(random_sample_rows(source, purpose))
