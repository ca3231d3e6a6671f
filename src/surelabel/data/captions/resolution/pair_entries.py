"""Convert file entries to ``Pairs``: images, captions and ids."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from surelabel.data.captions.resolution.caption_entries import (
    CaptionEntry,
    check_captioned_images_exist,
    check_captions_exist,
    clean_caption_image,
    clean_caption_text,
)
from surelabel.data.labels.resolution.image_resolution import (
    quote_first_unresolved,
    resolve_image_paths,
)
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import ItemId, Pairs, Relevance


def resolve_pairs(
    source: Path,
    entries: Iterable[CaptionEntry],
    *,
    images_root: str | Path | None,
    listed_images: Iterable[str] = (),
    relevance: Relevance | None = None,
) -> Pairs:
    """Return images with captions, in the order of the file.

    If an image has a text twice, the text is kept once, and a warning states the number of repeated
    texts. Another warning names images without a caption, which are not used.

    Args:
        source: Path of the caption file.
        entries: Captions of the file.
        images_root: Folder to which image paths are relative. If None, the folder of ``source`` is
            used.
        listed_images: Image paths in the file, including images without a caption.
        relevance: Graded relevance of the captions for the images; both are in the order of
            ``entries``. If None, the file has no relevance.

    Raises:
        DataError: If there are no captions, if a text, a path or an id is invalid, if an image does
            not exist, or if some ids are missing or repeated.
    """
    entries = list(entries)
    texts = [clean_caption_text(source, entry.place, entry.text) for entry in entries]
    images = [clean_caption_image(source, entry.place, entry.image) for entry in entries]
    check_captions_exist(source, texts)
    paths = resolve_image_paths(source, images, images_root)
    row_of = {path: row for row, path in enumerate(dict.fromkeys(paths))}
    check_captioned_images_exist(row_of)
    listed_paths = resolve_image_paths(source, list(listed_images), images_root)
    _warn_of_images_without_captions(source, listed_paths, row_of)
    pairs = Pairs(
        list(row_of),
        texts,
        np.array([row_of[path] for path in paths]),
        _image_ids(source, entries, paths),
        _entry_ids(source, "caption", [(entry.place, entry.caption_id) for entry in entries]),
        relevance,
    )
    return _without_repeated_captions(source, pairs)


def _image_ids(
    source: Path, entries: Sequence[CaptionEntry], paths: Sequence[str]
) -> list[ItemId] | None:
    """Return the id of each image, or None if the file has no ids of images.

    Raises:
        DataError: If an image has several ids, or as for :func:`_entry_ids`.
    """
    first_entry: dict[str, CaptionEntry] = {}
    for entry, path in zip(entries, paths, strict=True):
        first = first_entry.setdefault(path, entry)
        if first.image_id != entry.image_id:
            raise DataError(
                f"{source}, {entry.place}: the captions of an image must have the same image id; "
                f"got {quote_of_file(entry.image_id)} here and {quote_of_file(first.image_id)} in "
                f"{first.place} for {path!r}. Correct the ids."
            )
    return _entry_ids(source, "image", [(e.place, e.image_id) for e in first_entry.values()])


def _entry_ids(source: Path, kind: str, ids: Sequence[tuple[str, object]]) -> list[ItemId] | None:
    """Return the ids of the images or captions of a file, or None if the file has no ids.

    Raises:
        DataError: If only some ids are missing, if an id is neither an integer nor a string, or if
            an id is repeated.
    """
    if all(id_ is None for _, id_ in ids):
        return None
    place_of: dict[ItemId, str] = {}
    for place, id_ in ids:
        if not isinstance(id_, int | str) or isinstance(id_, bool):
            raise DataError(
                f"{source}, {place}: the {kind} id must be an integer or a string; got "
                f"{quote_of_file(id_)}. Correct the id, or remove all {kind} ids."
            )
        if id_ in place_of:
            raise DataError(
                f"{source}, {place}: each {kind} must have a unique id; {quote_of_file(id_)} is "
                f"also the id in {place_of[id_]}. Correct the ids."
            )
        place_of[id_] = place
    return list(place_of)


def _warn_of_images_without_captions(
    source: Path, listed_paths: Iterable[str], captioned_paths: Iterable[str]
) -> None:
    if without := sorted(set(listed_paths) - set(captioned_paths)):
        warnings.warn(
            f"Images without a caption are ignored: {len(without)} in {source}, such as "
            f"{quote_first_unresolved(without)}.",
            UserWarning,
            stacklevel=5,  # caller of `read_pairs`
        )


def _without_repeated_captions(source: Path, pairs: Pairs) -> Pairs:
    distinct = pairs.without_repeated_captions()
    if n_repeated := len(pairs) - len(distinct):
        warnings.warn(
            f"Repeated captions of the same image are ignored: {n_repeated} of {len(pairs)} "
            f"captions in {source}.",
            UserWarning,
            stacklevel=5,  # caller of `read_pairs`
        )
    return distinct
