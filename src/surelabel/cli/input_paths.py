"""Check the paths of datasets on the command line, before a command starts."""

import os
from collections.abc import Sequence
from typing import TypeVar

import click

from surelabel.errors import DataError
from surelabel.storage.image_paths import split_container_path

Sources = TypeVar("Sources", Sequence[str], str | None)


def validate_terminal_input_paths(
    _: click.Context, __: click.Parameter, sources: Sources
) -> Sources:
    """Check that sources exist, at the start of a command and before torch is imported.

    A member of a tar archive and a cell of a Parquet table exist if the archive or table exists. A
    source with a colon, such as ``scenes-80:test``, ``xmp:FOLDER`` or ``s3://bucket/folder``, and
    standard input are checked later.

    Returns:
        The argument.

    Raises:
        DataError: If a source does not exist, or is a collection without a split.
    """
    for source in [sources] if isinstance(sources, str) else sources or ():
        is_path = source.strip() not in ("", "-") and ":" not in source
        if is_path and not os.path.lexists(source) and split_container_path(source) is None:
            _raise_missing_input_path(source)
    return sources


def _raise_missing_input_path(source: str) -> None:
    """Raise the error of a source that does not exist."""
    from surelabel.data import COLLECTIONS

    if source in COLLECTIONS:
        splits = ", ".join(f"{source}:{split}" for split in COLLECTIONS[source])
        raise DataError(f"A collection needs a split; got {source}. Give one of {splits}.")
    raise DataError(f"{source} does not exist. Check the path.")
