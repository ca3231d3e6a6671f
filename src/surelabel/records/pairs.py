"""This module defines records of images with captions and of their precomputed vectors."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.records.noisy_correspondence import noisy_caption_rows
from surelabel.records.relevance import Relevance, RowIndices, as_row_indices
from surelabel.shapes import check_shapes

ItemId = int | str  # identifier of an image or a caption in a dataset


@dataclass(frozen=True)
class Pairs:
    """Images with captions; an image can have several captions.

    ``len(pairs)`` is the number of captions s, which is the number of pairs of an image and a
    caption. Images without a caption are allowed. They are candidates in retrieval, but are not
    used in training.

    Attributes:
        paths: Paths of n distinct images.
        captions: Texts of s captions.
        image_rows: Row of the image of each caption in ``paths``, ``(s,)``.
        image_ids: Distinct ids of the images in their dataset, length n, or None.
        caption_ids: Distinct ids of the captions in their dataset, length s, or None.
        relevance: Graded relevance of the captions for the images, which must include the captions
            of each image. If None, only the captions of an image are relevant for the image.
            Training does not use the relevance.

    Raises:
        InputError: If a row of ``image_rows`` or of ``relevance`` does not exist, if lengths do not
            match, if paths or ids are repeated, or if a caption is not a text or is empty.

    Example:
        >>> pairs = Pairs(["a.jpg", "b.jpg"], ["a dog", "a cat", "a kitten"], [0, 1, 1])
        >>> len(pairs), pairs.take([1]).captions
        (3, ['a cat', 'a kitten'])
    """

    paths: Sequence[str]
    captions: Sequence[str]
    image_rows: RowIndices
    image_ids: Sequence[ItemId] | None = None
    caption_ids: Sequence[ItemId] | None = None
    relevance: Relevance | None = None

    def __post_init__(self) -> None:
        image_rows = _check_pair_rows(
            self.image_rows, len(self.paths), len(self.captions), self.relevance
        )
        no_text = (row for row, text in enumerate(self.captions) if not _is_caption_text(text))
        if (row := next(no_text, None)) is not None:
            raise InputError(
                f"captions must be non-empty strings; got {self.captions[row]!r} in row {row}. "
                "Remove the caption and the entry of the caption in image_rows."
            )
        _check_distinct("paths", self.paths, len(self.paths))
        _check_distinct("image_ids", self.image_ids, len(self.paths))
        _check_distinct("caption_ids", self.caption_ids, len(self.captions))
        object.__setattr__(self, "image_rows", image_rows)

    def __len__(self) -> int:
        return len(self.captions)

    def take(self, image_rows: Sequence[int] | RowIndices) -> "Pairs":
        """Return the images at the given rows, in the order of the rows, with their captions.

        The captions keep their order. The relevance is restricted to these images and captions.

        Raises:
            InputError: If a row does not exist or is repeated.
        """
        images = as_row_indices("image_rows", image_rows, len(self.paths))
        captions = np.flatnonzero(np.isin(self.image_rows, images))
        return self._take_rows(images, captions)

    def without_repeated_captions(self) -> "Pairs":
        """Return the pairs with only the first of equal captions of an image."""
        first_row: dict[tuple[int, str], int] = {}
        for row, key in enumerate(zip(self.image_rows.tolist(), self.captions, strict=True)):
            first_row.setdefault(key, row)
        if len(first_row) == len(self):
            return self
        return self._take_rows(np.arange(len(self.paths)), np.array(list(first_row.values())))

    def with_noise(self, ratio: float, *, seed: int) -> "Pairs":
        """Return the pairs with noisy correspondence: some captions belong to a wrong image.

        See :func:`noisy_caption_rows`. Each caption keeps its id and its relevance for the images.

        Args:
            ratio: Fraction of the captions that are permuted, in [0, 1].
            seed: Seed of the permutation, in [0, 2**32).

        Raises:
            InputError: If ``ratio`` or ``seed`` is out of range.
        """
        captions = noisy_caption_rows(len(self), ratio, seed=seed)
        return Pairs(
            self.paths,
            [self.captions[row] for row in captions],
            self.image_rows,
            self.image_ids,
            _items_at(self.caption_ids, captions),
            _relevance_of_pairs(self.relevance, np.arange(len(self.paths)), captions),
        )

    def _take_rows(self, images: RowIndices, captions: RowIndices) -> "Pairs":
        """Return the given images and captions; all captions belong to the images."""
        return Pairs(
            [self.paths[row] for row in images],
            [self.captions[row] for row in captions],
            _renumber_image_rows(self.image_rows[captions], images, len(self.paths)),
            _items_at(self.image_ids, images),
            _items_at(self.caption_ids, captions),
            _relevance_of_pairs(self.relevance, images, captions),
        )


@dataclass(frozen=True)
class PairFeatures:
    """Precomputed vectors of images and captions, in place of image files and texts.

    The vectors of images and captions can differ in width. ``len(features)`` is the number of
    captions s, as in :class:`Pairs`.

    Attributes:
        image_vectors: Finite vectors of n images, ``(n, d)``.
        text_vectors: Finite vectors of s captions, ``(s, e)``.
        image_rows: Row of the image of each caption in ``image_vectors``, ``(s,)``.
        relevance: Graded relevance of the captions for the images, or None; see :class:`Pairs`.

    Raises:
        InputError: If a row of ``image_rows`` or of ``relevance`` does not exist, if shapes do not
            match, or if a vector is not finite.
    """

    image_vectors: npt.NDArray[np.float32]
    text_vectors: npt.NDArray[np.float32]
    image_rows: RowIndices
    relevance: Relevance | None = None

    def __post_init__(self) -> None:
        images = _finite_vectors("image_vectors", self.image_vectors, "n d")
        texts = _finite_vectors("text_vectors", self.text_vectors, "s e")
        image_rows = _check_pair_rows(self.image_rows, len(images), len(texts), self.relevance)
        object.__setattr__(self, "image_vectors", images)
        object.__setattr__(self, "text_vectors", texts)
        object.__setattr__(self, "image_rows", image_rows)

    def __len__(self) -> int:
        return len(self.text_vectors)

    def take(self, image_rows: Sequence[int] | RowIndices) -> "PairFeatures":
        """Return the images at the given rows with their captions; see :meth:`Pairs.take`.

        Raises:
            InputError: If a row does not exist or is repeated.
        """
        images = as_row_indices("image_rows", image_rows, len(self.image_vectors))
        captions = np.flatnonzero(np.isin(self.image_rows, images))
        return PairFeatures(
            self.image_vectors[images],
            self.text_vectors[captions],
            _renumber_image_rows(self.image_rows[captions], images, len(self.image_vectors)),
            _relevance_of_pairs(self.relevance, images, captions),
        )

    def with_noise(self, ratio: float, *, seed: int) -> "PairFeatures":
        """Return the vectors with noisy correspondence; see :meth:`Pairs.with_noise`.

        Args:
            ratio: Fraction of the captions that are permuted, in [0, 1].
            seed: Seed of the permutation, in [0, 2**32).

        Raises:
            InputError: If ``ratio`` or ``seed`` is out of range.
        """
        captions = noisy_caption_rows(len(self), ratio, seed=seed)
        return PairFeatures(
            self.image_vectors,
            self.text_vectors[captions],
            self.image_rows,
            _relevance_of_pairs(self.relevance, np.arange(len(self.image_vectors)), captions),
        )


def _check_pair_rows(
    image_rows: RowIndices, n_images: int, n_captions: int, relevance: Relevance | None
) -> RowIndices:
    rows = as_row_indices("image_rows", image_rows, n_images)
    if len(rows) != n_captions:
        raise InputError(
            f"image_rows must have one entry per caption, {n_captions}; got {len(rows)}."
        )
    if relevance is not None:
        as_row_indices("image_rows of the relevance", relevance.image_rows, n_images)
        as_row_indices("caption_rows of the relevance", relevance.caption_rows, n_captions)
    return rows


def _is_caption_text(text: object) -> bool:
    return isinstance(text, str) and not text.isspace() and text != ""


def _check_distinct(name: str, items: Sequence[ItemId] | None, length: int) -> None:
    if items is None:
        return
    if len(items) != length:
        raise InputError(f"{name} must have {length} entries; got {len(items)}.")
    if len(set(items)) < length:
        repeated = Counter(items).most_common(1)[0][0]
        raise InputError(f"{name} must be distinct; got {repeated!r} more than once.")


def _finite_vectors(name: str, vectors: npt.ArrayLike, axes: str) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # infinity raises an error below
        array = np.asarray(vectors, dtype=np.float32)
    check_shapes(**{name: (array, axes)})
    is_finite = np.isfinite(array).all(axis=1)
    if not is_finite.all():
        raise InputError(
            f"{name} must be finite; got {format_count((~is_finite).sum(), 'row')} with NaN or "
            f"infinity, such as row {np.argmin(is_finite)}. Remove the rows with these values."
        )
    return array


def _renumber_image_rows(image_rows: RowIndices, images: RowIndices, n_images: int) -> RowIndices:
    """Return the positions in ``images`` of the images of captions.

    Raises:
        InputError: If an image is repeated.
    """
    if len(np.unique(images)) < len(images):
        raise InputError("image_rows must be distinct; got a repeated row. Remove the repetitions.")
    positions = np.full(n_images, -1)
    positions[images] = np.arange(len(images))
    return positions[image_rows]


def _items_at(items: Sequence[ItemId] | None, rows: RowIndices) -> list[ItemId] | None:
    return None if items is None else [items[row] for row in rows]


def _relevance_of_pairs(
    relevance: Relevance | None, images: RowIndices, captions: RowIndices
) -> Relevance | None:
    return None if relevance is None else relevance.take(images, captions)
