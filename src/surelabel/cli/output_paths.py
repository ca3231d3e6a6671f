"""Checks of output paths, before a command starts."""

import os
from pathlib import Path

import click

from surelabel.errors import DataError
from surelabel.files import check_folder_is_replaceable


def validate_terminal_output_path(
    _: click.Context, __: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that an output path can be written.

    Raises:
        DataError: If the path is empty or cannot be written.
    """
    if path is not None:
        if not path.strip():
            raise DataError("An output path must not be empty; give a path.")
        absolute = Path(path).absolute()
        existing = next(p for p in (absolute, *absolute.parents) if p.exists())
        if existing != absolute and not existing.is_dir():
            raise DataError(f"{path} cannot be written: {existing} is a file; give another path.")
        if existing.is_dir() and not os.access(existing, os.W_OK):
            raise DataError(
                f"{path} cannot be written: there is no write permission for {existing}; give "
                "another path."
            )
    return path


def validate_terminal_output_folder(
    context: click.Context, option: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that a folder can be written or replaced.

    Raises:
        DataError: If the folder contains the current working folder, or cannot be written.
    """
    if path is not None:
        check_folder_is_replaceable(path)
    return validate_terminal_output_path(context, option, path)
