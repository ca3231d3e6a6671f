"""Find near-duplicates in an index by an exact search over all pairs of image vectors."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import DataError, InputError
from surelabel.progress import Progress, report_progress
from surelabel.retrieval.index import Index
from surelabel.summaries import Summary

DEFAULT_FALSE_POSITIVE_RATE = 1e-6  # share of the pairs of different images
DEFAULT_MAX_PAIRS = 1_000_000  # about 24 MB
TILE_ROWS = 2048  # rows and columns of the cosines that are in memory at once
EXACT_ROWS = 4096  # pairs whose cosine is computed in float64 at once
FLOAT32_ROUNDING = 2.0**-24  # largest relative error of one operation
N_SUMMARY_GROUPS = 20  # groups in the summary of a result

HalfVectors = npt.NDArray[np.float16]
ReadVectorBlocks = Callable[[], Iterator[HalfVectors]]  # blocks (b, d), in row order


@dataclass(frozen=True)
class DuplicateLimit:
    """Cosine limit with its false-positive rate, measured on pairs of different images.

    The limit was selected on images that were not used for the counts.

    Attributes:
        target_rate: False-positive rate for which the limit was selected.
        min_cosine: Lowest cosine of a reported pair.
        n_reported: Number of pairs of different images with at least this cosine.
        n_pairs: Number of all pairs of different images.
        low: Lower end of the 95 % interval of the false-positive rate.
        high: Upper end of the 95 % interval of the false-positive rate.
    """

    target_rate: float
    min_cosine: float
    n_reported: int
    n_pairs: int
    low: float
    high: float

    @property
    def false_positive_rate(self) -> float:
        """Return the measured share of the pairs of different images that the limit reports."""
        return self.n_reported / self.n_pairs


@dataclass(frozen=True)
class MeasuredDuplicateLimits:
    """Cosine limits of one encoder, in increasing order.

    Attributes:
        encoder: Name of the encoder.
        limits: Cosine limits, measured by ``benchmarks/duplicates.py``.
    """

    encoder: str
    limits: tuple[DuplicateLimit, ...]


# Limits by the fingerprint of the encoder, because they do not apply to other weights of the
# encoder. Measured by benchmarks/duplicates.py on all pairs of 10,000 scenes; see
# docs/duplicates.md.
_N_SCENE_PAIRS = 49_995_000
MEASURED_DUPLICATE_LIMITS = {
    "fe315ae1b6406310": MeasuredDuplicateLimits(
        "tiny-vit",
        (
            DuplicateLimit(1e-3, 0.915, 44_655, _N_SCENE_PAIRS, 8.24e-4, 9.649e-4),
            DuplicateLimit(1e-4, 0.956, 4_321, _N_SCENE_PAIRS, 7.45e-5, 1.018e-4),
            DuplicateLimit(1e-5, 0.973, 386, _N_SCENE_PAIRS, 5.84e-6, 1.008e-5),
            DuplicateLimit(1e-6, 0.983, 14, _N_SCENE_PAIRS, 8.00e-8, 6.00e-7),
        ),
    ),
    "22ac165df4d599a6": MeasuredDuplicateLimits(
        "tiny-rn",
        (
            DuplicateLimit(1e-3, 0.924, 45_268, _N_SCENE_PAIRS, 8.41e-4, 9.67e-4),
            DuplicateLimit(1e-4, 0.960, 4_012, _N_SCENE_PAIRS, 6.83e-5, 9.31e-5),
            DuplicateLimit(1e-5, 0.976, 339, _N_SCENE_PAIRS, 4.88e-6, 9.10e-6),
            DuplicateLimit(1e-6, 0.985, 31, _N_SCENE_PAIRS, 2.40e-7, 1.120e-6),
        ),
    ),
}


@dataclass(frozen=True)
class DuplicatePair:
    """Two images with different content whose image vectors are similar.

    Attributes:
        first: Absolute path of the image that is earlier in the index.
        second: Absolute path of the other image.
        cosine: Cosine of the two image vectors, in [-1, 1].
    """

    first: str
    second: str
    cosine: float


@dataclass(frozen=True)
class DuplicateGroup:
    """Group of images, each an exact duplicate or a near-duplicate of another image of the group.

    Two images of a group can be less similar than the limit if other images connect them.

    Attributes:
        paths: Absolute paths of two or more images, in row order.
        exact: Paths of images with equal content, in lists of two or more images.
        pairs: Near-duplicates, by decreasing cosine. Of images with equal content, only the first
            image is compared.
    """

    paths: tuple[str, ...]
    exact: tuple[tuple[str, ...], ...]
    pairs: tuple[DuplicatePair, ...]


@dataclass(frozen=True)
class DuplicateSearch:
    """Result of a search for duplicates.

    Attributes:
        groups: Groups of duplicates, in the row order of their first images.
        min_cosine: Lowest cosine of a reported pair.
        encoder: Name of the encoder, if its false-positive rates were measured; otherwise None.
        limit: Highest measured limit that is not above ``min_cosine``; its false-positive rate is
            an upper bound. If there is no such limit, the value is None.
        n_images: Number of images of the index.
        n_compared_images: Number of compared images; of images with equal content, only the first.
        n_zero_vectors: Number of images whose vector is zero, and which were not compared.
        n_reported_pairs: Number of compared pairs with at least ``min_cosine``.
    """

    groups: tuple[DuplicateGroup, ...]
    min_cosine: float
    encoder: str | None
    limit: DuplicateLimit | None
    n_images: int
    n_compared_images: int
    n_zero_vectors: int
    n_reported_pairs: int

    @property
    def n_compared_pairs(self) -> int:
        """Return the number of all pairs of compared images."""
        return math.comb(self.n_compared_images, 2)

    @property
    def share_of_pairs(self) -> float:
        """Return the share of compared pairs that are reported, in [0, 1], or 0 without a pair.

        The share is at least the false-positive rate in this index, provided that the search
        reports near-duplicates at least as often as other pairs.
        """
        return self.n_reported_pairs / max(self.n_compared_pairs, 1)

    def __repr__(self) -> str:
        """Return the limit, the numbers of images and pairs, and the first groups."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    def _summary(self) -> Summary:
        properties = {
            "min_cosine": self.min_cosine,
            "images": self.n_images,
            "groups": len(self.groups),
            "pairs": self.n_reported_pairs,
        }
        rows = [
            (str(number), path)
            for number, group in enumerate(self.groups[:N_SUMMARY_GROUPS], start=1)
            for path in group.paths
        ][:N_SUMMARY_GROUPS]
        n_rows = sum(len(group.paths) for group in self.groups)
        return Summary("DuplicateSearch", properties, ("group", "image"), rows, n_rows)


def find_duplicates(
    index: Index,
    *,
    min_cosine: float | None = None,
    false_positive_rate: float | None = None,
    max_pairs: int = DEFAULT_MAX_PAIRS,
    progress: Progress | None = None,
) -> DuplicateSearch:
    """Find the groups of exact duplicates and near-duplicates of an index, by exact search.

    Images with equal content hash are exact duplicates. Images with different content are
    near-duplicates if the cosine of their image vectors is at least ``min_cosine``. The groups are
    the connected components of both relations.

    All pairs are compared, so that the time grows with the square of the number of images. Only
    blocks of vectors, the content hash of each image and the reported pairs are in memory.

    Args:
        index: Index of two or more images with image vectors.
        min_cosine: Lowest cosine of a near-duplicate, in (0, 1]. If None, the lowest measured limit
            whose target rate is at most ``false_positive_rate``.
        false_positive_rate: Share of the pairs of different images that is reported, in (0, 1). If
            this share and ``min_cosine`` are None, 1e-6. The rates were measured on generated
            scenes for ``tiny-vit`` and ``tiny-rn``; other encoders require ``min_cosine``.
        max_pairs: Maximum number of near-duplicate pairs, >= 1. More pairs raise an error.
        progress: Function called with the number of compared pairs and the number of all pairs.

    Returns:
        Groups of duplicates, with the limit and its measured false-positive rate.

    Raises:
        InputError: If the index has fewer than two images or no image vectors, or if an argument is
            out of range. Also if both ``min_cosine`` and ``false_positive_rate`` are given, or if
            no limit was measured for the encoder or the rate. Also if more than ``max_pairs`` pairs
            are found.
        DataError: If the image vectors are damaged or not finite.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from PIL import Image
        >>> import surelabel as sl
        >>> paths = sl.collection("scenes-80", split="test").paths[:6]
        >>> recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion"])
        >>> with TemporaryDirectory() as folder:
        ...     Image.open(paths[0]).save(f"{folder}/small.jpg", quality=60)
        ...     predictions = recognizer.predict([*paths, f"{folder}/small.jpg"])
        ...     index = sl.Index.create(f"{folder}/index", predictions)
        ...     result = sl.find_duplicates(index, min_cosine=0.98)
        >>> [[Path(path).name for path in group.paths] for group in result.groups]
        [['00000.jpg', 'small.jpg']]
        >>> result.n_compared_pairs, result.n_reported_pairs
        (21, 1)
    """
    _check_duplicate_index(index)
    if not isinstance(max_pairs, int | np.integer) or max_pairs < 1:
        raise InputError(
            f"max_pairs must be a whole number of at least 1; got {max_pairs}. Give the maximum "
            "number of reported pairs."
        )
    encoder, limit = _select_duplicate_limit(index, min_cosine, false_positive_rate)
    if min_cosine is None:
        assert limit is not None  # the limit of the rate
        min_cosine = limit.min_cosine
    first_rows = _first_rows_of_contents(index.content_hashes)
    squared_norms = _squared_norms_of_index(index)
    is_first = first_rows == np.arange(len(first_rows))
    is_compared = is_first & (squared_norms > 0)
    rows, cosines = find_similar_rows(
        index.image_vectors,
        squared_norms,
        is_compared,
        min_cosine=min_cosine,
        max_pairs=max_pairs,
        progress=progress,
    )
    return DuplicateSearch(
        tuple(_duplicate_groups(index, first_rows, rows, cosines)),
        float(min_cosine),
        encoder,
        limit,
        n_images=len(first_rows),
        n_compared_images=int(is_compared.sum()),
        n_zero_vectors=int((squared_norms == 0).sum()),
        n_reported_pairs=len(rows),
    )


def _check_duplicate_index(index: Index) -> None:
    """Check that an index has two or more images, and image vectors.

    Raises:
        InputError: If the index has fewer than two images, or no image vectors.
    """
    if len(index) < 2:
        raise InputError(
            f"A search for duplicates needs an index of at least 2 images; {index.folder} has "
            f"{len(index)}. Add images with `surelabel index`."
        )
    if not index.vector_width:
        raise InputError(
            f"A search for duplicates needs an index with image vectors; {index.folder} has none. "
            "Build the index from image files with `surelabel index`."
        )


def _select_duplicate_limit(
    index: Index, min_cosine: float | None, false_positive_rate: float | None
) -> tuple[str | None, DuplicateLimit | None]:
    """Return the name of the measured encoder of an index, and the limit for the search.

    Both are None if no limit was measured for the encoder. The limit is None if all measured limits
    are above ``min_cosine``.

    Raises:
        InputError: If both values are given, a value is out of range, or no limit was measured.
    """
    if min_cosine is not None and false_positive_rate is not None:
        raise InputError(
            "Only min_cosine or false_positive_rate can be given; got both. Remove one of them."
        )
    if min_cosine is not None and not 0 < min_cosine <= 1:  # comparisons with NaN are False
        raise InputError(
            f"min_cosine must be above 0 and at most 1; got {min_cosine}. Give a cosine such as "
            "0.95."
        )
    if false_positive_rate is not None and not 0 < false_positive_rate < 1:
        raise InputError(
            f"false_positive_rate must be in (0, 1); got {false_positive_rate}. Give a rate "
            f"such as {DEFAULT_FALSE_POSITIVE_RATE:g}."
        )
    fingerprint = None if index.recognizer is None else index.recognizer.encoder
    measured = MEASURED_DUPLICATE_LIMITS.get(fingerprint or "")
    if min_cosine is not None:
        lower = [] if measured is None else measured.limits
        reached = [limit for limit in lower if limit.min_cosine <= min_cosine]
        return (measured.encoder if measured else None), (reached[-1] if reached else None)
    if measured is None:
        raise InputError(
            f"No false-positive rate was measured for the encoder of {index.folder}. Give a "
            "cosine limit as min_cosine, such as 0.95, and check the reported images."
        )
    rate = DEFAULT_FALSE_POSITIVE_RATE if false_positive_rate is None else false_positive_rate
    for limit in measured.limits:
        if limit.target_rate <= rate:
            return measured.encoder, limit
    lowest = measured.limits[-1].target_rate
    raise InputError(
        f"false_positive_rate must be at least {lowest:g}, the lowest available rate for "
        f"{measured.encoder}; got {rate:g}. Give a higher rate, or a cosine limit as min_cosine."
    )


def _first_rows_of_contents(hashes: Sequence[str | None]) -> npt.NDArray[np.int64]:
    """Return the first row with the content hash of each row, ``(n,)``.

    A row without a hash is its own first row.
    """
    first_row_of_hash: dict[str, int] = {}
    first_rows = (
        row if text is None else first_row_of_hash.setdefault(text, row)
        for row, text in enumerate(hashes)
    )
    return np.fromiter(first_rows, np.int64, len(hashes))


def _squared_norms_of_index(index: Index) -> npt.NDArray[np.float64]:
    """Return the squared norm of each image vector, ``(n,)``, and verify all vectors.

    Raises:
        DataError: If the vectors are damaged, or a value is not finite.
    """
    parts = [
        np.einsum("ij,ij->i", tile, tile)
        for block in index.image_vectors()
        for tile in _float64_tiles(block)
    ]
    squared_norms: npt.NDArray[np.float64] = np.concatenate(parts)
    invalid_rows = np.flatnonzero(~np.isfinite(squared_norms))
    if len(invalid_rows):
        path = index.paths_of_rows(invalid_rows[:1].tolist())[0]
        raise DataError(
            f"Image vectors must be finite; the vector of {path} is not finite. Remove the image "
            f"from {index.folder} and add the image again with `surelabel index`."
        )
    return squared_norms


def _float64_tiles(vectors: HalfVectors) -> Iterator[npt.NDArray[np.float64]]:
    """Yield vectors in float64, at most ``TILE_ROWS`` at once."""
    for start in range(0, len(vectors), TILE_ROWS):
        yield vectors[start : start + TILE_ROWS].astype(np.float64)


@dataclass(frozen=True)
class _VectorBlock:
    """Compared vectors of one block.

    Attributes:
        rows: Row numbers, increasing, ``(b,)``.
        vectors: Stored vectors, ``(b, d)``.
        squared_norms: Squared norms of the vectors, ``(b,)``.
        unit: Unit vectors in float32, ``(b, d)``.
    """

    rows: npt.NDArray[np.int64]
    vectors: HalfVectors
    squared_norms: npt.NDArray[np.float64]
    unit: npt.NDArray[np.float32]


def find_similar_rows(
    read_blocks: ReadVectorBlocks,
    squared_norms: npt.NDArray[np.float64],
    is_compared: npt.NDArray[np.bool_],
    *,
    min_cosine: float,
    max_pairs: int = DEFAULT_MAX_PAIRS,
    progress: Progress | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return all pairs of rows whose cosine is at least a limit, and their cosines.

    The cosines of all pairs are computed in float32. If a cosine is at least the limit minus the
    bound of the rounding error, it is computed again in float64 and compared with the limit.
    Therefore, the result does not depend on the sizes of the blocks.

    All vectors are read again for each block, so that only two blocks are in memory at once.

    Args:
        read_blocks: Function that yields the vectors of n rows in blocks ``(b, d)``, in row order.
        squared_norms: Squared norm of each vector, ``(n,)``.
        is_compared: Mask of the rows that are compared, ``(n,)``, with norms above 0.
        min_cosine: Lowest cosine of a pair, in (0, 1].
        max_pairs: Maximum number of pairs, >= 1.
        progress: Function called with the number of compared pairs and the number of all pairs.

    Returns:
        Rows of the pairs, ``(k, 2)``, and their cosines, ``(k,)``. In each pair, the smaller row is
        first. The pairs are sorted by the first row, then by the second row.

    Raises:
        InputError: If more than ``max_pairs`` pairs are found.

    Example:
        >>> vectors = np.array([[1, 0], [0, 1], [2, 0]], np.float16)
        >>> rows, cosines = find_similar_rows(
        ...     lambda: iter([vectors]), np.array([1.0, 1.0, 4.0]), np.ones(3, bool), min_cosine=0.9
        ... )
        >>> rows.tolist(), cosines.tolist()
        ([[0, 2]], [1.0])
    """
    found_rows, found_cosines = [np.empty((0, 2), np.int64)], [np.empty(0)]
    n_all, n_done, n_found = math.comb(int(is_compared.sum()), 2), 0, 0
    for first, second in _pairs_of_blocks(read_blocks, squared_norms, is_compared):
        for tile_rows, tile_cosines in _similar_rows_of_blocks(first, second, min_cosine):
            found_rows.append(tile_rows)
            found_cosines.append(tile_cosines)
            n_found += len(tile_rows)
            if n_found > max_pairs:
                raise InputError(
                    f"More than {max_pairs:,} pairs have a cosine of at least {min_cosine:g}. Give "
                    "a higher min_cosine, or a higher max_pairs."
                )
        n_rows = len(second.rows)
        n_done += math.comb(n_rows, 2) if first is second else len(first.rows) * n_rows
        report_progress(progress, n_done, n_all, "pairs")
    rows, cosines = np.concatenate(found_rows), np.concatenate(found_cosines)
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    return rows[order], cosines[order]


def _pairs_of_blocks(
    read_blocks: ReadVectorBlocks,
    squared_norms: npt.NDArray[np.float64],
    is_compared: npt.NDArray[np.bool_],
) -> Iterator[tuple[_VectorBlock, _VectorBlock]]:
    """Yield each block with itself and with each later block; read all vectors for each block."""
    first_number, n_blocks = 0, 1  # the number of blocks is known after the first pass
    while first_number < n_blocks:
        first, start = None, 0
        for number, vectors in enumerate(read_blocks()):
            rows = slice(start, start + len(vectors))
            start, n_blocks = rows.stop, max(n_blocks, number + 1)
            if number >= first_number:
                second = _vector_block(vectors, rows, squared_norms, is_compared)
                first = second if first is None else first
                yield first, second
        first_number += 1


def _vector_block(
    vectors: HalfVectors,
    rows: slice,
    squared_norms: npt.NDArray[np.float64],
    is_compared: npt.NDArray[np.bool_],
) -> _VectorBlock:
    """Return the compared vectors of a block, and their unit vectors."""
    mask, norms = is_compared[rows], squared_norms[rows]
    vectors, norms = vectors[mask], norms[mask]
    unit = vectors.astype(np.float32)
    unit /= np.sqrt(norms).astype(np.float32)[:, None]
    return _VectorBlock(rows.start + np.flatnonzero(mask), vectors, norms, unit)


def _similar_rows_of_blocks(
    first: _VectorBlock, second: _VectorBlock, min_cosine: float
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Yield similar pairs of rows of two blocks, ``(k, 2)``, and their cosines, ``(k,)``, in parts.

    If both blocks are one object, each pair is yielded once.
    """
    width = first.unit.shape[1]
    lowest = np.float32(min_cosine - 2 * (width + 8) * FLOAT32_ROUNDING)
    for i in range(0, len(first.rows), TILE_ROWS):
        rows = first.unit[i : i + TILE_ROWS]
        for j in range(i if first is second else 0, len(second.rows), TILE_ROWS):
            cosines = rows @ second.unit[j : j + TILE_ROWS].T
            candidates = np.argwhere(cosines >= lowest) + np.array([i, j])
            if first is second:
                candidates = candidates[candidates[:, 0] < candidates[:, 1]]
            for start in range(0, len(candidates), EXACT_ROWS):
                yield _exact_similar_rows(
                    first, second, candidates[start : start + EXACT_ROWS], min_cosine
                )


def _exact_similar_rows(
    first: _VectorBlock,
    second: _VectorBlock,
    candidates: npt.NDArray[np.int64],
    min_cosine: float,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the candidates whose cosine in float64 is at least the limit, and their cosines.

    Products of float16 values are multiples of 2**-48. Therefore the sum of the products has no
    rounding error if the norms of the vectors are below 5, and the order of the sum is irrelevant.
    """
    i, j = candidates.T
    x, y = first.vectors[i].astype(np.float64), second.vectors[j].astype(np.float64)
    norms = np.sqrt(first.squared_norms[i] * second.squared_norms[j])
    cosines = np.minimum(np.einsum("ij,ij->i", x, y) / norms, 1.0)
    is_similar = cosines >= min_cosine
    rows = np.stack([first.rows[i], second.rows[j]], axis=1)
    return rows[is_similar], cosines[is_similar]


def connected_rows(
    first_rows: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the smallest row number of the connected component of each row, ``(n,)``.

    Args:
        first_rows: First row with the same content as each row, ``(n,)``.
        pairs: Connected rows, ``(k, 2)``.

    Example:
        >>> connected_rows(np.array([0, 1, 2, 0]), np.array([[1, 2]])).tolist()
        [0, 1, 1, 0]
    """
    parents = first_rows.tolist()

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = row = parents[parents[row]]
        return row

    for first, second in pairs.tolist():
        low, high = sorted((root(first), root(second)))
        parents[high] = low
    return np.fromiter(map(root, range(len(parents))), np.int64, len(parents))


def _duplicate_groups(
    index: Index,
    first_rows: npt.NDArray[np.int64],
    pairs: npt.NDArray[np.int64],
    cosines: npt.NDArray[np.float64],
) -> Iterator[DuplicateGroup]:
    """Yield the groups of two or more images, in the row order of their first images."""
    roots = connected_rows(first_rows, pairs)
    is_grouped = np.bincount(roots, minlength=len(roots))[roots] > 1
    rows = np.flatnonzero(is_grouped).tolist()
    path_of_row = dict(zip(rows, index.paths_of_rows(rows), strict=True))
    members: dict[int, list[int]] = {}
    pairs_of_root: dict[int, list[DuplicatePair]] = {}
    for row in rows:
        members.setdefault(int(roots[row]), []).append(row)
    for number in np.argsort(-cosines, kind="stable").tolist():
        first, second = pairs[number].tolist()
        pair = DuplicatePair(path_of_row[first], path_of_row[second], float(cosines[number]))
        pairs_of_root.setdefault(int(roots[first]), []).append(pair)
    for root, group_rows in members.items():
        copies: dict[int, list[str]] = {}
        for row in group_rows:
            copies.setdefault(int(first_rows[row]), []).append(path_of_row[row])
        yield DuplicateGroup(
            tuple(path_of_row[row] for row in group_rows),
            tuple(tuple(paths) for paths in copies.values() if len(paths) > 1),
            tuple(pairs_of_root.get(root, ())),
        )
