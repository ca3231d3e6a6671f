"""Read captions from CSV files with the header ``image,caption`` and one caption per line."""

from collections.abc import Iterator
from pathlib import Path

from surelabel.data.captions.resolution.caption_entries import CaptionEntry, resolve_captions
from surelabel.data.captions.resolution.pair_entries import resolve_pairs
from surelabel.data.csv_rows import NumberedRow, open_csv_rows
from surelabel.errors import DataError
from surelabel.records import Captions, Pairs

HEADER = ["image", "caption"]


def read(path: str | Path, *, images_root: str | Path | None = None) -> Captions:
    """Read captions from a CSV file in UTF-8, with or without BOM, quotes and CRLF.

    An image with several captions has several lines. A caption that contains a comma needs quotes.

    Args:
        path: Path of the CSV file.
        images_root: Folder to which image paths are relative. If None, the folder of the CSV file
            is used.

    Raises:
        DataError: If the header is not ``image,caption``, or if a line is invalid or has no image
            or no caption. The message contains the number of the line.
    """
    path = Path(path)
    return resolve_captions(path, _csv_caption_entries(path), images_root=images_root)


def read_pairs(path: str | Path, *, images_root: str | Path | None = None) -> Pairs:
    """Read images with captions, in the order of the file.

    Args:
        path: Path of the CSV file.
        images_root: Folder to which image paths are relative. If None, the folder of the CSV file
            is used.

    Raises:
        DataError: For the reasons of :func:`read`, or if an image does not exist.
    """
    path = Path(path)
    return resolve_pairs(path, _csv_caption_entries(path), images_root=images_root)


def _csv_caption_entries(path: Path) -> list[CaptionEntry]:
    with open_csv_rows(path) as rows:
        return list(_parse_caption_rows(path, rows))


def _parse_caption_rows(path: Path, rows: Iterator[NumberedRow]) -> Iterator[CaptionEntry]:
    header = [column.strip() for column in next(rows, (0, []))[1]]
    if header != HEADER:
        raise DataError(
            f"{path}: the first line must be {','.join(HEADER)}; got {','.join(header)[:60]!r}. "
            "Correct the header."
        )
    for line, row in rows:
        if row and len(row) != len(HEADER):
            raise DataError(
                f"{path}, line {line}: expected 2 columns, an image and a caption; got {len(row)}: "
                f"{','.join(row)[:60]!r}. Put a caption that contains commas into double quotes."
            )
        if row:
            yield CaptionEntry(f"line {line}", row[0], row[1])
