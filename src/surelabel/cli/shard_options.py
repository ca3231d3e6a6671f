"""Define the option ``--shard i/n`` of ``tag``, which writes one shard of images to a folder."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command
from surelabel.errors import InputError

if TYPE_CHECKING:
    from surelabel.data import ImageShard

FILE_SUFFIXES = (".parquet", ".csv", ".jsonl")  # suffixes of prediction files


def shard_option(function: Command) -> Command:
    """Add the option ``--shard`` for one of n shards of the images."""
    return click.option(
        "--shard",
        callback=_parse_shard_option,
        metavar="I/N",
        help="Tag only shard I of N, and write its predictions to the folder of --out. Run N "
        "commands, with --shard 1/N to N/N.",
    )(function)


def _parse_shard_option(
    _: click.Context, parameter: click.Parameter, text: str | None
) -> "ImageShard | None":
    """Return the shard of a text ``i/n``.

    Raises:
        InputError: If the text is not a shard.
    """
    from surelabel.data import parse_image_shard

    try:
        return None if text is None else parse_image_shard(text)
    except InputError as error:
        raise InputError(f"--{error}") from error


def check_shard_options(out: str | None, others: Mapping[str, Any]) -> None:
    """Check that ``--shard`` has a folder for its predictions, and no output that needs all images.

    Args:
        out: Value of ``--out``, or None.
        others: Values of the options that exclude ``--shard``, by name.

    Raises:
        UsageError: If the folder is missing or is a file, or if an option excludes ``--shard``.
    """
    if given := [name for name, value in others.items() if value]:
        raise click.UsageError(
            f"--shard writes only a folder of predictions; got {', '.join(given)} too. Remove "
            f"{', '.join(given)}."
        )
    if not out:
        raise click.UsageError("--shard requires --out FOLDER; got no --out. Add --out FOLDER.")
    if out.lower().endswith(FILE_SUFFIXES) or os.path.isfile(out):
        raise click.UsageError(
            f"With --shard, --out must be a folder; got the file {out}. Give a folder."
        )
