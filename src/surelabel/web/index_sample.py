"""Sample images of an index at random, by permanent random numbers, and extend the sample."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from surelabel.arrays import Array, Flags
from surelabel.data.correction_log import CorrectionLog
from surelabel.data.labels.resolution.correction_history import CorrectionHistory
from surelabel.data.labels.resolution.correction_rows import CorrectionRow
from surelabel.data.permanent_random_numbers import image_identifier, permanent_random_numbers
from surelabel.data.random_sample_growth import grow_random_sample
from surelabel.errors import InputError
from surelabel.records import RANDOM_ROW, RowSelection
from surelabel.retrieval import Index
from surelabel.web.index_session import IndexedImage
from surelabel.web.indexed_images import (
    find_images_by_path,
    images_at_positions,
    positions_of_images,
)

_IN_CONTAINER = r"(?i)\.(tar|parquet)/"
_SEED = re.compile(r"seed (\d{1,10})", re.ASCII)  # query of the rows of a sample


@dataclass(frozen=True)
class IndexSampleState:
    """Random sample of an index.

    Attributes:
        images: Images of the sample that are in the index, in the order of their selection.
        is_checked: Whether each image was checked for all labels.
        inclusion_probability: Probability with which each image is in the sample, or 0 without a
            sample.
    """

    images: Sequence[IndexedImage]
    is_checked: Sequence[bool]
    inclusion_probability: float

    @property
    def unchecked(self) -> list[IndexedImage]:
        """Return the images that were not checked for all labels."""
        return [
            image
            for image, is_checked in zip(self.images, self.is_checked, strict=True)
            if not is_checked
        ]


class IndexSampler:
    """Random sample of the images of an index, whose permanent random numbers are cached.

    The numbers are those of ``surelabel label-next`` with the same seed. Each image of the sample
    is recorded in the file of corrections.

    Args:
        log: File of the corrections.
    """

    def __init__(self, log: CorrectionLog) -> None:
        self._log, self._lock = log, Lock()
        self._key: tuple[str, int] | None = None
        self._numbers: Array = np.empty(0)

    def state(self, index: Index) -> IndexSampleState:
        """Return the current random sample.

        Raises:
            DataError: If the file of the corrections is damaged.
        """
        return sample_state(index, self._log.history())

    def extend(self, index: Index, *, n_unchecked: int, seed: int) -> IndexSampleState:
        """Extend the random sample to a number of unchecked images, and return the sample.

        The sample consists of the images with the smallest permanent random numbers. Images that
        were added to the index are included if their number is below that of an earlier image.

        Args:
            index: Index of the images.
            n_unchecked: Number of images that are not checked yet, >= 0. If fewer images are left,
                all are sampled.
            seed: Seed of the permanent random numbers.

        Raises:
            InputError: If the sample was chosen with another seed. Also if the sample was chosen
                by another program, and images were added to the index or many were removed.
            DataError: If the file of the corrections is damaged or cannot be written.
        """
        numbers = self._permanent_random_numbers(index, seed)

        def rows(history: CorrectionHistory) -> list[CorrectionRow]:
            has_seed = _check_seed(history, seed)
            state = sample_state(index, history)
            is_sampled = np.zeros(len(numbers), dtype=bool)
            is_sampled[positions_of_images(index, state.images)] = True
            new, probability = _extended_sample(
                numbers,
                is_sampled,
                n_unchecked - len(state.unchecked),
                earlier_probability=None if has_seed else state.inclusion_probability,
            )
            return [
                CorrectionRow(
                    image.path,
                    "",
                    np.nan,
                    chosen_by=RANDOM_ROW,
                    inclusion_probability=probability,
                    query=f"seed {seed}",
                )
                for image in images_at_positions(index, new)
            ]

        self._log.append(rows)
        return self.state(index)

    def _permanent_random_numbers(self, index: Index, seed: int) -> Array:
        """Return the number of each image, ``(n,)``, which is computed once for a revision."""
        with self._lock:
            if self._key != (index.revision, seed):
                identifiers = index_image_identifiers(index)
                self._numbers = permanent_random_numbers(identifiers, f"label-next {seed}")
                self._key = index.revision, seed
            return self._numbers


def sample_state(index: Index, history: CorrectionHistory) -> IndexSampleState:
    """Return the random sample of a history, without images that are not in the index.

    Args:
        index: Index of the images.
        history: Corrections.
    """
    images = find_images_by_path(index, history.sampled)
    return IndexSampleState(
        list(images.values()),
        [history.is_complete(path, index.names) for path in images],
        next(iter(history.sampled.values()), 0.0),
    )


def index_image_identifiers(index: Index) -> list[str]:
    """Return the identifier of each image for permanent random numbers, in the order of ``paths``.

    The identifiers are folder name and file name, as those of ``surelabel label-next``. They are
    computed from the stored paths, which takes less time for a large index.
    """
    searcher = index.searcher
    prefix = searcher.root.current.replace(os.sep, "/").rstrip("/") + "/"
    identifiers = list[str]()
    for shard in searcher.shards:
        for block in shard.active_path_blocks():
            in_container = pc.match_substring_regex(pa.array(block, pa.string()), _IN_CONTAINER)
            # an absolute path keeps its last two parts
            names = [
                "/".join((path if "/" in path else prefix + path).rsplit("/", 2)[-2:])
                for path in block
            ]
            for row in pc.indices_nonzero(in_container).to_pylist():
                names[row] = image_identifier(searcher.root.resolve(block[row]))
            identifiers += names
    return identifiers


def _extended_sample(
    numbers: Array, is_sampled: Flags, n_more: int, *, earlier_probability: float | None
) -> tuple[npt.NDArray[np.int64], float]:
    """Return the positions of new images of the sample, in the order of their numbers.

    Args:
        numbers: Permanent random numbers, ``(n,)``.
        is_sampled: Mask of the images of the earlier sample, ``(n,)``.
        n_more: Number of new images. The number is higher if more images were added to the index
            below the largest number of the sample, and lower if fewer images are left.
        earlier_probability: Inclusion probability of a sample that was not chosen by the numbers,
            to which no images can have been added. If None, the sample was chosen by the numbers.

    Returns:
        Positions, and the inclusion probability of the extended sample. If the sample need not be
        extended, there are no positions, and the probability is 0.

    Raises:
        InputError: If the sample was not chosen by the numbers, and images were added to the index
            or many were removed.
    """
    n_earlier, n_added, before = int(is_sampled.sum()), 0, earlier_probability
    if before is None:
        # the images below the largest number that are not in the sample were added since
        largest = numbers[is_sampled].max(initial=-1.0)
        n_added = int((numbers <= largest).sum()) - n_earlier
        before = n_earlier / (len(numbers) - n_added)
    if n_more <= 0 and not n_added:
        return np.empty(0, np.int64), 0.0
    chosen_by = [""] * len(numbers)
    for position in np.flatnonzero(is_sampled):
        chosen_by[position] = RANDOM_ROW
    selection = RowSelection(chosen_by, np.where(is_sampled, before, np.nan))
    sample = grow_random_sample(
        numbers,
        selection,
        ~is_sampled,
        n_more=max(0, n_more - n_added),
        max_new=len(numbers),
    )
    new = np.flatnonzero(sample.is_sampled & ~is_sampled)
    return new[np.argsort(numbers[new], kind="stable")], sample.probability


def _check_seed(history: CorrectionHistory, seed: int) -> bool:
    """Return whether the sample was chosen with the seed; without a sample, return True.

    Raises:
        InputError: If the sample was chosen with another seed.
    """
    queries = [row.query for row in history.rows if row.is_sampling]
    seeds = {int(match[1]) for query in queries if (match := _SEED.fullmatch(query))}
    if seeds and seeds != {seed}:
        raise InputError(
            f"The seed must be {min(seeds)}, with which the random sample was chosen; got {seed}. "
            f"Send the seed {min(seeds)}."
        )
    return bool(seeds) or not history.sampled
