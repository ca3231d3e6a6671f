"""Convert file entries to ``Captions``: texts and image paths."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from surelabel.data.labels.resolution.image_resolution import resolve_image_paths
from surelabel.data.text_lists import LINE_LIMIT
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file
from surelabel.records import Captions
from surelabel.storage.stored_images import missing_stored_images

_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")


class CaptionEntry(NamedTuple):
    """Caption in a file, before validation.

    Attributes:
        place: Place in the file, such as ``line 2``.
        image: Path of the image.
        text: Text of the caption.
        image_id: Id of the image in the dataset, or None if the file has no ids.
        caption_id: Id of the caption in the dataset, or None if the file has no ids.
    """

    place: str
    image: object
    text: object
    image_id: object = None
    caption_id: object = None


def resolve_captions(
    source: Path,
    entries: Iterable[CaptionEntry],
    *,
    images_root: str | Path | None,
) -> Captions:
    """Return captions with resolved image paths, in the order of the file.

    The images need not exist, because captions can be used without images.

    Args:
        source: Path of the caption file.
        entries: Captions of the file; their ids are not used.
        images_root: Folder to which image paths are relative. If None, the folder of ``source`` is
            used.

    Raises:
        DataError: If there are no captions, or if a text or an image path is invalid.
    """
    texts, images = [], []
    for entry in entries:
        texts.append(clean_caption_text(source, entry.place, entry.text))
        images.append(clean_caption_image(source, entry.place, entry.image))
    check_captions_exist(source, texts)
    unique_images = list(dict.fromkeys(images))
    paths = resolve_image_paths(source, unique_images, images_root)
    path_of = dict(zip(unique_images, paths, strict=True))
    return Captions(texts, [path_of[image] for image in images])


def clean_caption_text(source: Path, place: str, text: object) -> str:
    """Return the text of a caption with single spaces between words.

    Args:
        source: Path of the caption file.
        place: Place of the caption in the file, such as ``line 2``.
        text: Entry of the file.

    Raises:
        DataError: If the entry is not a string, is empty, is longer than 10,000 characters, or
            contains a NUL byte or half of a surrogate pair.
    """
    caption = " ".join(text.split()) if isinstance(text, str) else ""
    if not caption:
        raise DataError(
            f"{source}, {place}: expected a caption; got {quote_of_file(text)}. Add the caption, "
            "or remove the entry."
        )
    if len(caption) > LINE_LIMIT:
        raise DataError(
            f"{source}, {place}: a caption must have at most {LINE_LIMIT} characters; got "
            f"{len(caption)} characters: {caption[:40]!r}…. Give one caption per entry."
        )
    if match := _NO_TEXT.search(caption):
        raise DataError(
            f"{source}, {place}: a caption must not contain NUL or surrogate characters; got "
            f"{match[0]!r} after {caption[: match.start()][-40:]!r}. Remove this character."
        )
    return caption


def check_captions_exist(source: Path, texts: list[str]) -> None:
    """Check that a file has at least one caption.

    Raises:
        DataError: If ``texts`` is empty.
    """
    if not texts:
        raise DataError(f"{source} must contain at least one caption; got none. Give another file.")


def check_captioned_images_exist(paths: Iterable[str]) -> None:
    """Check that the image files of captions exist.

    Raises:
        DataError: If an image does not exist; the message contains the number of missing images and
            the first missing image.
    """
    paths = list(paths)
    if missing := [paths[row] for row in missing_stored_images(paths)]:
        raise DataError(
            f"The image files of all captions must exist; {len(missing)} of {len(paths)} files are "
            f"missing, such as {missing[0]!r}. Correct the paths, or give another images_root."
        )


def clean_caption_image(source: Path, place: str, image: object) -> str:
    """Return the path of the image of a caption without surrounding spaces.

    Raises:
        DataError: If the path is not a string, is empty, or contains a NUL byte.
    """
    path = image.strip() if isinstance(image, str) else ""
    if not path or "\0" in path:
        raise DataError(
            f"{source}, {place}: every caption must have an image path; got "
            f"{quote_of_file(image)}. Add the path."
        )
    return path
