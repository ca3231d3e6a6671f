"""Check output paths and model paths on the command line, before a command starts."""

import itertools
import os
from pathlib import Path

import click

from surelabel.cli.option_errors import name_of_parameter
from surelabel.errors import DataError
from surelabel.files import check_folder_is_replaceable
from surelabel.recognizer_folder_checks import (
    check_folder_is_not_encoder,
    exported_file_of_model,
)


def validate_terminal_output_path(
    _: click.Context, parameter: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that an output path can be written.

    Raises:
        DataError: If the path is empty or cannot be written.
    """
    if path is not None:
        _check_path_is_not_empty(parameter, path)
        absolute = Path(path).absolute()
        existing = next(p for p in (absolute, *absolute.parents) if p.exists())
        if existing != absolute and not existing.is_dir():
            raise DataError(
                f"{path} cannot be written: {existing} is a file, not a folder. Give another path."
            )
        if existing.is_dir() and not os.access(existing, os.W_OK):
            raise DataError(
                f"{path} cannot be written: there is no write permission for {existing}. Give "
                "another path."
            )
    return path


def validate_terminal_output_directory(
    context: click.Context, parameter: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that files can be written to a new or existing folder.

    Raises:
        DataError: If the path is empty or is a file, or if the folder cannot be written.
    """
    if path is not None and Path(path).is_file():
        name = name_of_parameter(parameter)
        raise DataError(f"{name} requires a folder; got the file {path}. Give another path.")
    return validate_terminal_output_path(context, parameter, path)


def validate_terminal_output_folder(
    context: click.Context, parameter: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that a folder can be written or replaced.

    Raises:
        DataError: If the path is empty or is a file, if the folder contains the current working
            folder, or if the folder cannot be written.
    """
    if path is not None:
        _check_path_is_not_empty(parameter, path)
        check_folder_is_replaceable(path)
    return validate_terminal_output_directory(context, parameter, path)


def unused_output_path(path: str) -> str:
    """Return a path that does not exist: the given path, or the path with a number.

    Args:
        path: Path of a suggested output.
    """
    paths = itertools.chain([path], (f"{path}-{number}" for number in itertools.count(2)))
    return next(path for path in paths if not os.path.lexists(path))


def _check_path_is_not_empty(parameter: click.Parameter, path: str) -> None:
    if not path.strip():
        raise DataError(f"{name_of_parameter(parameter)} must not be empty. Give a path.")


def validate_terminal_model_path(
    _: click.Context, parameter: click.Parameter, model: str | None
) -> str | None:
    """Check at the start of a command that the path in a model argument exists.

    The name of an encoder can contain a slash, as in ``ViT-B-16/openai``. A text is a path if it
    starts with a slash, a dot or a tilde, ends with a slash, or follows ``local-dir:`` or
    ``onnx:``. The name of an existing file or folder is also a path. A file must be an exported
    recognizer by its suffix.

    Returns:
        The argument; a tilde at its start is replaced by the home folder.

    Raises:
        DataError: If the path does not exist, if it is a file in place of a folder, or a folder of
            an encoder without ``local-dir:``.
    """
    prefix, colon, path = (model or "").partition(":")
    if colon and prefix in ("local-dir", "onnx"):
        path = os.path.expanduser(path)
    elif model and (
        model.startswith(("/", ".", "~")) or model.endswith("/") or Path(model).is_file()
    ):
        prefix, path = "", os.path.expanduser(model)
    elif model and Path(model).is_dir():
        prefix, path = "", model
    else:
        return model
    is_exported = not prefix and exported_file_of_model(path) is not None
    if prefix != "onnx" and Path(path).is_file() and not is_exported:
        raise DataError(
            f"{name_of_parameter(parameter)} requires a folder, the name of an encoder, or an "
            f"exported .onnx or .xml file; got the file {path}. Give the folder of the file, "
            "ARCHITECTURE/FILE for a weights file, or scores:FILE for a table of scores."
        )
    if not path or not Path(path).exists():
        kind = "file" if prefix == "onnx" or is_exported else "folder"
        raise DataError(
            f"{name_of_parameter(parameter)} {model!r}: no such {kind}. Check the path, or give "
            "the name of an encoder, such as tiny-vit."
        )
    if not prefix and not is_exported:
        check_folder_is_not_encoder(path)
    return model if prefix else path
