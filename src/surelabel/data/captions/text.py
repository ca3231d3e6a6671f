"""Read captions without images from text files with one caption per line."""

from pathlib import Path

from surelabel.data.captions.resolution.caption_entries import (
    check_captions_exist,
    clean_caption_text,
)
from surelabel.data.text_lists import read_text_list
from surelabel.errors import DataError
from surelabel.records import Captions, Pairs


def read(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read captions from a text file in UTF-8 with one caption per line; ignore empty lines.

    A line with a tab is refused, because it probably has several columns.

    Args:
        path: Path of the text file.
        images_root: Not used, because the captions have no images.

    Raises:
        DataError: If the file cannot be read, has no captions, or has a line with a tab or with
            more than 10,000 characters.
    """
    path = Path(path)
    lines = enumerate(read_text_list(path), start=1)
    texts = [_text_caption(path, number, line) for number, line in lines if line]
    check_captions_exist(path, texts)
    return Captions(texts)


def read_pairs(path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
    """Raise an error, because the captions of a text file have no images.

    Args:
        path: Path of the text file.
        images_root: Not used.

    Raises:
        DataError: In every case.
    """
    raise DataError(
        f"Pairs must have an image for each caption; {path} contains captions without images. Give "
        "COCO captions, JSON lines, Flickr tokens, or CSV with the header image,caption."
    )


def _text_caption(path: Path, number: int, line: str) -> str:
    if "\t" in line:
        raise DataError(
            f"{path}, line {number}: expected one caption; got columns separated by a tab: "
            f"{line[:40]!r}. Convert the file to CSV with the header image,caption."
        )
    return clean_caption_text(path, f"line {number}", line)
