"""Read relevance judgments of images and captions: JSON of ECCV Caption and CxC, or CSV files."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.data.csv_rows import NumberedRow, open_csv_rows
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file, read_json
from surelabel.records import ItemId, Pairs, Relevance

HEADER = ["image_id", "caption_id", "relevance"]
ID_LIMIT = 10**18
_KIND = "a JSON file with the relevant ids of each query id, as in ECCV Caption"


def read_relevance(path: str | Path) -> dict[int, list[int]]:
    """Return the relevant captions of each image, or the relevant images of each caption, by id.

    The file is one JSON object. Its keys are ids of queries, as strings, and its values are lists
    of ids. Examples are ``eccv_image_to_caption.json`` of ECCV Caption and the files of CxC.
    :func:`relevant_captions` and :func:`relevant_images` convert ids to rows of ``Pairs``.

    Args:
        path: Path of the JSON file.

    Returns:
        The ids of the relevant items of each query, in the order of the file.

    Raises:
        DataError: If the file cannot be read or is no such object, or if an id is not an integer
            >= 0 below 10**18. Also if a query or a relevant id is repeated, or if a query has no
            relevant id.

    Source:
        Chun et al., ECCV Caption, ECCV 2022, arXiv:2204.03359. Parekh et al., Crisscrossed
        Captions, EACL 2021, arXiv:2004.15020.
    """
    path = Path(path)
    content = read_json(path, kind=_KIND, remedy="Correct the file.")
    if not isinstance(content, dict) or not content:
        raise DataError(
            f'{path} must be one JSON object {{"id": [ids], …}}; got {quote_of_file(content)}. '
            "Give a file such as eccv_image_to_caption.json."
        )
    return {
        _query_id(path, query): _relevant_ids(path, query, ids) for query, ids in content.items()
    }


def read_graded_relevance(path: str | Path, pairs: Pairs) -> Relevance:
    """Return the graded relevance of pairs from a CSV file with image ids and caption ids.

    The header is ``image_id,caption_id,relevance``. Lines of relevance 0 can be omitted. The
    captions that belong to an image need lines, too.

    Args:
        path: Path of a CSV file in UTF-8.
        pairs: Images and captions with the ids of the file.

    Raises:
        InputError: If the pairs have no ids.
        DataError: If the file has another header, an invalid line or no relevance above 0. Also if
            an id is not in ``pairs``, if a pair is repeated, or if a relevance is outside [0, 1].
    """
    path = Path(path)
    image_row_of, caption_row_of = (
        {str(id_): row for row, id_ in enumerate(_ids_of_pairs(pairs, kind))}
        for kind in ("image", "caption")
    )
    with open_csv_rows(path) as rows:
        entries = _relevance_entries(path, rows, image_row_of, caption_row_of)
    if not any(entries.values()):
        raise DataError(
            f"{path} must contain at least one relevance above 0; got none. Correct the file."
        )
    listed = np.array([key for key, grade in entries.items() if grade > 0])
    return Relevance(listed[:, 0], listed[:, 1], np.array([g for g in entries.values() if g > 0]))


def _relevance_entries(
    path: Path,
    rows: Iterator[NumberedRow],
    image_row_of: Mapping[str, int],
    caption_row_of: Mapping[str, int],
) -> dict[tuple[int, int], float]:
    """Return the relevance of each pair of an image and a caption, by their row numbers."""
    header = [column.strip() for column in next(rows, (0, []))[1]]
    if header != HEADER:
        raise DataError(
            f"{path}: the first line must be {','.join(HEADER)}; got {','.join(header)[:60]!r}. "
            "Correct the header."
        )
    entries: dict[tuple[int, int], float] = {}
    for line, row in rows:
        if row:
            image, caption, grade = _graded_csv_row(path, line, row)
            for kind, id_, row_of in (
                ("image", image, image_row_of),
                ("caption", caption, caption_row_of),
            ):
                if id_ not in row_of:
                    raise DataError(
                        f"{path}, line {line}: each {kind} id must be in the pairs; got "
                        f"{id_[:40]!r}. Remove the line, or read the relevance of all pairs before "
                        "you select pairs."
                    )
            key = image_row_of[image], caption_row_of[caption]
            if key in entries:
                raise DataError(
                    f"{path}, line {line}: each pair of image and caption must be in only one "
                    f"line; image {image!r} and caption {caption!r} are repeated. Remove the "
                    "repeated line."
                )
            entries[key] = grade
    return entries


def _graded_csv_row(path: Path, line: int, row: Sequence[str]) -> tuple[str, str, float]:
    """Return the image id, the caption id and the grade of a line."""
    try:
        image, caption, grade = (cell.strip() for cell in row)
        value = float(grade)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise DataError(
            f"{path}, line {line}: expected an image id, a caption id and a relevance in [0, 1]; "
            f"got {','.join(row)[:60]!r}. Correct that line; for another scale, divide each "
            "relevance by the maximum."
        )
    return image, caption, value


def _ids_of_pairs(pairs: Pairs, kind: str) -> Sequence[ItemId]:
    ids = pairs.image_ids if kind == "image" else pairs.caption_ids
    if ids is None:
        raise InputError(
            f"Relevance requires the {kind} ids of the pairs; got pairs without {kind} ids. Read "
            "COCO captions, or JSON lines with image_id and caption_id."
        )
    return ids


def _query_id(path: Path, query: str) -> int:
    is_number = query.isascii() and query.isdecimal() and len(query) < len(str(ID_LIMIT))
    if not is_number or str(int(query)) != query:
        raise DataError(
            f"{path}: each id must be an integer in [0, {ID_LIMIT}); got {quote_of_file(query)}. "
            "Correct the id."
        )
    return int(query)


def _relevant_ids(path: Path, query: str, ids: Any) -> list[int]:
    is_list = isinstance(ids, list) and all(type(i) is int and 0 <= i < ID_LIMIT for i in ids)
    if not is_list or not ids or len(set(ids)) < len(ids):
        raise DataError(
            f"{path}: the relevant ids of {quote_of_file(query)} must be a non-empty list of "
            f"distinct integers in [0, {ID_LIMIT}); got {quote_of_file(ids)}. Correct the list."
        )
    return list(ids)
