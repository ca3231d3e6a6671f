"""Which pictures and which label names somebody means: folders, files, lists, standard input."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from surelabel.data.pictures import SUFFIXES
from surelabel.errors import DataError, InputError

NAME_LIMIT = 200  # characters of a label name
LISTS = (".txt", ".csv", ".tsv", ".lst", ".list", ".names")  # what files of names are called

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def find_pictures(places: Sequence[str | Path]) -> list[str]:
    """List the pictures of folders, files and lists, each once, in a stable order.

    A folder gives its pictures and those of its subfolders, sorted, without hidden ones. A
    ``.txt`` file is a list with one path a line, relative to its own folder, or else to the
    working directory; ``-`` is such a list on standard input. Any other file is taken as
    a picture, whatever its suffix. Whether a picture can be read shows when it is opened.

    Args:
        places: Folders, files, lists and ``-``.

    Returns:
        The paths, absolute where a place or a line was.

    Raises:
        DataError: a place does not exist, a list cannot be read, or nothing was found.
    """
    found: dict[str, str] = {}
    counts = []
    for place in map(str, places):
        candidates, pictures = _pictures_in(place)
        counts.append(f"{len(pictures)} of {candidates} files in {place}")
        for picture in pictures:
            found.setdefault(os.path.abspath(picture), picture)
    if not found:
        came = "; ".join(counts) if counts else "no place to look in"
        raise DataError(
            f"expected pictures ({' '.join(sorted(SUFFIXES))}), found {came}. "
            "Give a folder of pictures, picture files, or a .txt list of them."
        )
    return list(found.values())


def read_names(source: str | Path) -> list[str]:
    """Label names as they were given: in words, in a file or on standard input.

    Args:
        source: ``"dog, bicycle"``, a file with one name a line, or ``-`` for such lines on
            standard input.

    Returns:
        The names without spaces around them. An empty line stays, as ``""``, so that the
        place of a name is its line; :func:`checked_names` leaves it out.

    Raises:
        DataError: the file does not exist or is not text. One word that ends as files of names
            do, or has a / in it, is taken for a file.
    """
    text = str(source)
    if text == "-":
        return _lines(_standard_input())
    if os.path.isfile(text):
        return _lines(_text(text))
    if isinstance(source, Path) or _is_called_like_a_file(text):
        raise DataError(
            f"{text}: no such file. Give a file with one label name a line, or the names "
            'themselves: "dog, bicycle". A single name with a / in it goes into a file.'
        )
    return [name.strip() for name in re.split(r"[,\n]", text)]


def checked_names(names: Sequence[str]) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Check label names and take their aliases apart.

    Args:
        names: One label each; ``"sofa|couch"`` is the label ``sofa``, also written
            ``couch``. Empty ones are left out.

    Returns:
        The names, and for each name all its spellings, itself first.

    Raises:
        InputError: a text instead of a list, no name at all, two alike (whatever their case),
            one above 200 characters, one with a control character, or an empty alias. The
            message says which, by its line.

    Example:
        >>> checked_names(["sofa|couch", "dog"])
        (['sofa', 'dog'], {'sofa': ('sofa', 'couch'), 'dog': ('dog',)})
    """
    if isinstance(names, str):
        raise InputError(f"names is a list of labels; got the text {names!r}; write [{names!r}]")
    aliases: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    for line, entry in enumerate(names, start=1):
        if not entry.strip():
            continue
        spellings = tuple(spelling.strip() for spelling in entry.split("|"))
        for spelling in spellings:
            _check_name(spelling, line)
            before = lines.get(spelling.casefold())
            if before is not None:
                raise InputError(
                    f"label names must differ, also without their case. Got {_short(spelling)} "
                    f"on line {before} and again on line {line}. Take one out."
                )
            lines[spelling.casefold()] = line
        aliases[spellings[0]] = spellings
    if not aliases:
        raise InputError(
            'expected label names, got none. Give them as "dog, bicycle" or as a file with '
            "one name a line."
        )
    return list(aliases), aliases


def _is_called_like_a_file(text: str) -> bool:
    if "," in text or "\n" in text:
        return False
    return text.lower().endswith(LISTS) or "/" in text or os.sep in text


def _check_name(name: str, line: int) -> None:
    fault = ""
    if not name:
        fault = "is empty beside a |"
    elif len(name) > NAME_LIMIT:
        fault = f"has {len(name)} characters; at most {NAME_LIMIT} are allowed"
    elif _CONTROL.search(name):
        fault = "has a control character (a tab, a line break …)"
    if fault:
        raise InputError(f"label name {_short(name)} on line {line} {fault}. Correct that line.")


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:40]}…")


def _pictures_in(place: str) -> tuple[int, list[str]]:
    """How many files a place holds, and the pictures among them."""
    if place == "-":
        listed = _listed(_standard_input(), Path())
    elif os.path.isdir(place):
        files = list(_files_below(place))
        return len(files), [f for f in files if os.path.splitext(f)[1].lower() in SUFFIXES]
    elif not os.path.exists(place):
        raise DataError(f"{place}: no such file or folder. Check the path.")
    elif place.lower().endswith(".txt"):
        listed = _listed(_text(place), Path(place).parent)
    else:
        listed = [place]
    return len(listed), listed


def _files_below(folder: str) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(here, f) for f in sorted(files) if not f.startswith("."))


def _listed(text: str, folder: Path) -> list[str]:
    """The paths of a list: beside the list where they are there, else as they stand."""
    beside = ((line, str(folder / line)) for line in _kept(_lines(text)))
    return [path if os.path.exists(path) else line for line, path in beside]


def _kept(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if line)


def _lines(text: str) -> list[str]:
    return [line.strip(" \t\r") for line in text.removesuffix("\n").split("\n")]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} must be text in UTF-8. Got other bytes at {error.start}. Save it as UTF-8."
        ) from error


def _standard_input() -> str:
    try:
        return sys.stdin.read().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError("standard input must be text in UTF-8. Got other bytes.") from error
