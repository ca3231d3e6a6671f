"""Read Flickr token files, whose lines have an image, ``#``, a number, a tab and a caption."""

import re
from pathlib import Path

from surelabel.data.captions.resolution.caption_entries import CaptionEntry, resolve_captions
from surelabel.data.captions.resolution.pair_entries import resolve_pairs
from surelabel.errors import DataError
from surelabel.file_readers import open_lines
from surelabel.records import Captions, Pairs

TOKEN_LINE = re.compile(r"(?P<id>(?P<image>[^\t]+)#\d+)[ ]*\t(?P<text>.*)")


def read(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read captions from a token file of Flickr8k or Flickr30k, in the order of the file.

    A line consists of ``1000268201_693b08cb0e.jpg#0``, a tab, and the caption. Empty lines are
    ignored.

    Args:
        path: Path of the file, such as ``Flickr8k.token.txt``.
        images_root: Folder of the images. If None, the folder of the file is used.

    Raises:
        DataError: If a line is invalid; the message contains the number of the line.
    """
    path = Path(path)
    return resolve_captions(path, _token_entries(path), images_root=images_root)


def read_pairs(path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
    """Read images with captions; ids are the image, and the image with ``#`` and the number.

    Args:
        path: Path of the file, such as ``Flickr8k.token.txt``.
        images_root: Folder of the images. If None, the folder of the file is used.

    Raises:
        DataError: For the reasons of :func:`read`, if an image does not exist, or if an id is
            repeated.
    """
    path = Path(path)
    return resolve_pairs(path, _token_entries(path), images_root=images_root)


def _token_entries(path: Path) -> list[CaptionEntry]:
    with open_lines(path) as texts:
        lines = enumerate(texts, start=1)
        return [_parse_token_line(path, number, line) for number, line in lines if line.strip()]


def _parse_token_line(path: Path, number: int, line: str) -> CaptionEntry:
    match = TOKEN_LINE.fullmatch(line.strip())
    if match is None:
        raise DataError(
            f"{path}, line {number}: expected an image, #, a number, a tab and a caption, as "
            f"in 'a.jpg#0\\tA dog .'; got {line.strip()[:40]!r}. Correct that line."
        )
    image = match["image"].strip()
    return CaptionEntry(f"line {number}", image, match["text"], image, match["id"].strip())
