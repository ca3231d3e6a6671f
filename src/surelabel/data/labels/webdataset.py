"""Read tar shards of WebDataset, with the labels of each image in ``0001.json`` or ``0001.cls``."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from surelabel.counts import format_count
from surelabel.data.container_images import list_images_of_container
from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_entries import (
    ImageEntry,
    image_entry,
    is_image_entry,
    resolve_image_entries,
)
from surelabel.data.text_lists import read_text_list
from surelabel.errors import DataError
from surelabel.file_readers import parse_json, quote_of_file
from surelabel.records import LabelledImages
from surelabel.storage.image_paths import is_tar_path
from surelabel.storage.stored_images import is_stored_image_missing, open_stored_image

MAX_JSON_BYTES = 2**20  # of a member with labels
MAX_CLASS_BYTES = 2**10  # of a member with one class
CLASS_FILES = ("classes.txt", "classnames.txt", "names.txt")  # beside the archives

_INDEX = re.compile(r"\d{1,9}", re.ASCII)
_NUMBERS = re.compile(r"[\d\s,;.+-]+", re.ASCII)  # no class name


class _ClassEntry(NamedTuple):
    """Image with the content of its member ``.cls``."""

    image: str
    member: str
    text: str  # class index or class name


class _ClassNames(NamedTuple):
    """Labels by class index, their file or option in messages, and the labels as a set."""

    names: Sequence[str]
    source: str
    allowed: frozenset[str]


def read(
    path: str | Path,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
) -> LabelledImages:
    """Read annotated images from tar shards of WebDataset.

    The labels of ``0001.jpg`` are in a member of the same archive. The key of a sample is the path
    of the member up to the first dot of its file name, so that ``0001.left.jpg`` has the same
    labels.

    - ``0001.json`` contains ``{"labels": ["dog"], "absent": ["cat"]}``. If there is the key
      ``absent``, labels in neither list are unknown. Otherwise, labels that are not in ``labels``
      are negative. Other keys are ignored.
    - ``0001.cls`` contains one class: a class index, counted from 0, or the name of the class. The
      class is positive, and all other labels are negative. This member is read only if the JSON
      member of the sample is missing or has no ``labels``.

    The labels of class indices are the lines of ``classes.txt``, ``classnames.txt`` or
    ``names.txt`` beside the archives. Without such a file, class index i has the label
    ``names[i]``.

    Args:
        path: Path of a tar archive, or of a folder with tar archives.
        images_root: Must be None, because the images are in the archives.
        names: Labels to return, in the order of the columns. If None, the labels of the file of
            classes are returned if a ``.cls`` member is read, and otherwise the sorted labels of
            all images. If a label is not in the file of classes, its targets are unknown.

    Raises:
        DataError: If there is no image, if an archive is damaged, if an image has no member with
            labels, or if a member contains no labels. Also if a class index has no label, or if a
            class is not in the file of classes, if ``images_root`` is given, or if a label is not
            in ``names``.
    """
    if images_root is not None:
        raise DataError(
            f"The images of {path} are inside tar archives, so images_root cannot be given; got "
            f"{images_root}. Remove images_root."
        )
    source = Path(path)
    shards = [source] if source.is_file() else tar_shards_of_folder(source)
    found = [entry for shard in shards for entry in _read_entries(str(shard))]
    if not found:
        raise DataError(
            f"{path} must contain tar archives with images; got no image. Give another file or "
            "folder."
        )
    n_json = sum(isinstance(entry, ImageEntry) for entry in found)
    parts = [f"labels of {format_count(n_json, 'image')} in .json members"] if n_json else []
    file = None
    classes = None if names is None else _ClassNames(names, "names", frozenset(names))
    if n_json < len(found):
        parts.append(f"classes of {format_count(len(found) - n_json, 'image')} in .cls members")
        file = _find_class_file(source.parent if source.is_file() else source)
    if file is not None:
        labels = _read_class_names(file)
        classes = _ClassNames(labels, str(file), frozenset(labels))
        parts.append(f"labels of the classes in {file.name}")
    return resolve_image_entries(
        source,
        [
            entry if isinstance(entry, ImageEntry) else _entry_of_class(entry, classes)
            for entry in found
        ],
        images_root=os.curdir,
        names=names,
        classes=None if file is None or classes is None else classes.names,
        reading="; ".join(parts),
    )


def tar_shards_of_folder(folder: Path) -> list[Path]:
    """Return the sorted paths of the tar archives in a folder, without archives in subfolders."""
    return sorted(file for file in folder.iterdir() if is_tar_path(file.name) and file.is_file())


def _read_entries(shard: str) -> Iterator[ImageEntry | _ClassEntry]:
    images, _ = list_images_of_container(shard)
    for image in images:
        folder, name = os.path.split(image)
        sample = f"{folder}/{name.partition('.')[0]}"
        json_member, class_member = f"{sample}.json", f"{sample}.cls"
        has_json, has_class = (
            not is_stored_image_missing(member) for member in (json_member, class_member)
        )
        if not has_json and not has_class:
            raise DataError(
                f"{image}: the labels of this image must be in the member "
                f"{os.path.basename(json_member)} or {os.path.basename(class_member)}; both "
                "members are missing. Add one of them, or give a CSV file with image paths in the "
                "column path."
            )
        content = _read_member(json_member, MAX_JSON_BYTES) if has_json else b""
        value = _parse_json_member(json_member, content) if has_json else {}
        if has_class and isinstance(value, dict) and "labels" not in value:
            yield _read_class_entry(image, class_member)
        else:
            yield _entry_of_json(image, json_member, value, content)


def _read_member(member: str, limit: int) -> bytes:
    with open_stored_image(member) as stream:
        content: bytes = stream.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"{member} must have at most {limit} bytes; got more. Correct this member.")
    return content


def _parse_json_member(member: str, content: bytes) -> Any:
    try:
        return parse_json(content)
    except ValueError as error:
        raise DataError(
            f"{member} must be a JSON object; got {error}. Correct this member."
        ) from error


def _entry_of_json(image: str, member: str, value: Any, content: bytes) -> ImageEntry:
    entry = {**value, "path": image} if isinstance(value, dict) else value
    if not is_image_entry(entry):
        raise DataError(
            f'{member}: expected {{"labels": ["…"], "absent": ["…"]}}, where absent is optional; '
            f"got {content[:60]!r}. Correct this member."
        )
    return image_entry(member, entry, remedy="Correct this member.")


def _read_class_entry(image: str, member: str) -> _ClassEntry:
    content = _read_member(member, MAX_CLASS_BYTES)
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or has_control_character(text) or _is_other_number(text):
        raise DataError(
            f"{member} must contain one class index from 0, or one class name in UTF-8; got "
            f"{content[:60]!r}. Correct this member."
        )
    return _ClassEntry(image, member, text)


def _is_other_number(text: str) -> bool:
    """Return True for numbers that are not a class index, such as ``-1``, ``0.5`` or ``1, 2``."""
    return _NUMBERS.fullmatch(text) is not None and _INDEX.fullmatch(text) is None


def _entry_of_class(entry: _ClassEntry, classes: _ClassNames | None) -> ImageEntry:
    """Return the label of a class as the only positive label of an image."""
    label = entry.text
    if _INDEX.fullmatch(label):
        if classes is None:
            raise DataError(
                f"{entry.member}: the label of the class index {label} must be known; got no file "
                f"of classes. Add {CLASS_FILES[0]} with one label per line beside the archives, or "
                "give names=LABELS in Python."
            )
        if int(label) >= len(classes.names):
            raise DataError(
                f"{entry.member}: the class index must be less than {len(classes.names)}, the "
                f"number of labels in {classes.source}; got {label}. Correct this member, or add "
                "the label."
            )
        label = classes.names[int(label)]
    elif classes is not None and label not in classes.allowed:
        raise DataError(
            f"{entry.member}: the class must be one of the labels in {classes.source}; got "
            f"{quote_of_file(label)}. Correct this member, or add the label."
        )
    return ImageEntry(entry.image, [label], None)


def _find_class_file(folder: Path) -> Path | None:
    files = [folder / name for name in CLASS_FILES if (folder / name).exists()]
    if len(files) > 1:
        raise DataError(
            f"{folder} must contain one file with the labels of the classes; got "
            f"{' and '.join(file.name for file in files)}. Remove all of these files except one."
        )
    return files[0] if files else None


def _read_class_names(file: Path) -> list[str]:
    """Return the labels of the class indices, one on each line.

    Raises:
        DataError: If a line is empty, has a control character, or is repeated.
    """
    lines: dict[str, int] = {}
    for number, label in enumerate(read_text_list(file), start=1):
        if not label or has_control_character(label) or label in lines:
            again = f", which is also on line {lines[label]}" if label in lines else ""
            raise DataError(
                f"{file}, line {number}: expected one label without control characters, once in "
                f"the file; got {quote_of_file(label)}{again}. Correct the line."
            )
        lines[label] = number
    return list(lines)
