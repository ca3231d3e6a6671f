"""Image paths and label names from folders, files, lists and standard input."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.errors import DataError, InputError

NAME_LIMIT = 200  # characters of a label
LIST_SUFFIXES = (".txt", ".csv", ".tsv", ".lst", ".list", ".names")  # of files with labels

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def find_images(sources: Sequence[str | Path]) -> list[str]:
    """Return the paths of the images in folders, files and lists, without duplicates.

    - A folder is searched recursively for files with an image suffix, in sorted order. Hidden
      files and folders are skipped.
    - A ``.txt`` file is a list with one path per line, relative to its folder, or else to the
      working directory; ``-`` is such a list on standard input.
    - Any other file is used as an image, whatever its suffix.

    Images are not opened, so damaged files are included.

    Args:
        sources: Folders, image files, lists and ``-``.

    Returns:
        The paths, absolute if the source or the line in the list is absolute.

    Raises:
        DataError: If a source does not exist, a list cannot be read, or there are no images.
    """
    paths: dict[str, str] = {}
    counts = []
    for source in map(str, sources):
        n_files, images = _list_source_images(source)
        counts.append(f"{len(images)} images among {n_files} files in {source}")
        for image in images:
            paths.setdefault(os.path.abspath(image), image)
    if not paths:
        summary = "; ".join(counts) if counts else "no source"
        raise DataError(
            f"Expected images ({' '.join(sorted(IMAGE_SUFFIXES))}); got {summary}. "
            "Give a folder of images, image files, or a .txt list of them."
        )
    return list(paths.values())


def read_label_names(source: str | Path) -> list[str]:
    """Return labels from a comma-separated string, a file or standard input.

    Args:
        source: Labels such as ``"dog, bicycle"``, the path of a file with one label per line,
            or ``-`` for such lines on standard input.

    Returns:
        The labels without surrounding spaces. An empty line is kept as ``""``, so that the
        index of a label is its line; :func:`parse_label_names` removes empty labels.

    Raises:
        DataError: If the file does not exist or is not UTF-8 text. A string without commas
            that contains / or ends with one of ``LIST_SUFFIXES`` is taken as a path.
    """
    text = str(source)
    if text == "-":
        return _split_list_lines(_read_standard_input())
    if os.path.isfile(text):
        return _split_list_lines(_read_list_file(text))
    if isinstance(source, Path) or _is_label_file_path(text):
        raise DataError(
            f"{text}: no such file. Give a file with one label per line, or the labels "
            'themselves: "dog, bicycle". Write a single label that contains / into a file.'
        )
    return [name.strip() for name in re.split(r"[,\n]", text)]


def parse_label_names(names: Sequence[str]) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Check labels and separate them from their aliases.

    Args:
        names: Labels; ``"sofa|couch"`` is the label ``sofa`` with the alias ``couch``. Empty
            strings are ignored.

    Returns:
        The labels, and for each label all its spellings, the label first.

    Raises:
        InputError: If ``names`` is a string or has no labels. Also if a label is repeated
            (ignoring case), is longer than 200 characters, contains a control character, or
            has an empty alias; the message has its line number.

    Example:
        >>> parse_label_names(["sofa|couch", "dog"])
        (['sofa', 'dog'], {'sofa': ('sofa', 'couch'), 'dog': ('dog',)})
    """
    if isinstance(names, str):
        raise InputError(
            f"names must be a list of labels; got the string {names!r}. Write [{names!r}]."
        )
    aliases: dict[str, tuple[str, ...]] = {}
    line_of: dict[str, int] = {}
    for line, entry in enumerate(names, start=1):
        if not entry.strip():
            continue
        spellings = tuple(spelling.strip() for spelling in entry.split("|"))
        for spelling in spellings:
            _check_label_name(spelling, line)
            first_line = line_of.get(spelling.casefold())
            if first_line is not None:
                raise InputError(
                    f"Labels must be unique, ignoring case; got {_shorten_label(spelling)} on line "
                    f"{first_line} and again on line {line}. Remove one of them."
                )
            line_of[spelling.casefold()] = line
        aliases[spellings[0]] = spellings
    if not aliases:
        raise InputError(
            'Expected labels; got none. Give them as "dog, bicycle" or as a file with one label '
            "per line."
        )
    return list(aliases), aliases


def _is_label_file_path(text: str) -> bool:
    if "," in text or "\n" in text:
        return False
    return text.lower().endswith(LIST_SUFFIXES) or "/" in text or os.sep in text


def _check_label_name(name: str, line: int) -> None:
    problem = ""
    if not name:
        problem = "is empty beside a |"
    elif len(name) > NAME_LIMIT:
        problem = f"has {len(name)} characters; at most {NAME_LIMIT} are allowed"
    elif _CONTROL.search(name):
        problem = "contains a control character (a tab, a line break …)"
    if problem:
        raise InputError(
            f"The label {_shorten_label(name)} on line {line} {problem}. Correct that line."
        )


def _shorten_label(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:40]}…")


def _list_source_images(source: str) -> tuple[int, list[str]]:
    """Return the number of files of a source and the paths of its images."""
    if source == "-":
        paths = _parse_image_list(_read_standard_input(), Path())
    elif os.path.isdir(source):
        files = list(_walk_visible_files(source))
        images = [f for f in files if os.path.splitext(f)[1].lower() in IMAGE_SUFFIXES]
        return len(files), images
    elif not os.path.exists(source):
        raise DataError(f"{source}: no such file or folder. Check the path.")
    elif source.lower().endswith(".txt"):
        paths = _parse_image_list(_read_list_file(source), Path(source).parent)
    else:
        paths = [source]
    return len(paths), paths


def _walk_visible_files(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(parent, f) for f in sorted(files) if not f.startswith("."))


def _parse_image_list(text: str, folder: Path) -> list[str]:
    """Return the paths of a list, relative to ``folder`` if the file exists there."""
    lines = [line for line in _split_list_lines(text) if line]
    candidates = ((line, str(folder / line)) for line in lines)
    return [path if os.path.exists(path) else line for line, path in candidates]


def _split_list_lines(text: str) -> list[str]:
    return [line.strip(" \t\r") for line in text.removesuffix("\n").split("\n")]


def _read_list_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} must be text in UTF-8; got other bytes at position {error.start}. "
            "Save it as UTF-8."
        ) from error


def _read_standard_input() -> str:
    try:
        return sys.stdin.read().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError(
            "Standard input must be text in UTF-8; got other bytes. Convert it to UTF-8."
        ) from error
