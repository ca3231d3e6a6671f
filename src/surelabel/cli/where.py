"""Where the labels of each picture are seen, as PNG files: ``--where`` of ``tag``."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surelabel.cli.terminal import Terminal, output
from surelabel.errors import DataError

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer
    from surelabel.records import Predictions

Command = Callable[..., None]
FEW, MOST = 3, 6  # labels shown of a picture: without a word, and at all
AT_ONCE = 32  # pictures between two lines of progress
LONGEST = 200  # bytes of a picture's name; file systems end at 255, of which some are added


def _folder(context: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """Refuse, before any work is done, what is a file or lies in one."""
    if path is not None and Path(path).is_file():
        raise DataError(f"{path} is a file, and --where writes a folder; name another place.")
    return output(context, option, path)


def where_option(function: Command) -> Command:
    """``--where``: a folder of pictures of where labels are seen."""
    return click.option(
        "--where",
        callback=_folder,
        metavar="FOLDER",
        help="Write a PNG for each picture there: which of its regions speak for its likeliest "
        f"labels, as many as --top-k says, {MOST} at most. [{FEW}]",
    )(function)


def write_where(
    terminal: Terminal,
    recognizer: "Recognizer",
    predictions: "Predictions",
    folder: str,
    top_k: int | None,
) -> None:
    """Write them; an older file of the same name is replaced.

    Raises:
        ConfigError: the recognizer cannot say where.
        DataError: a picture is gone meanwhile, or the folder cannot be written.
    """
    from surelabel.files import new_file
    from surelabel.recognizer import regions_of, tags_of
    from surelabel.report import region_sheet

    tags = tags_of(predictions, top_k=min(top_k or FEW, MOST))
    wanted = {
        p: [t["label"] for t in found] for p, found in zip(predictions.paths, tags, strict=True)
    }
    files = dict(zip(wanted, file_names(list(wanted)), strict=True))
    with terminal.progress("Drawing") as progress:
        for start in range(0, len(files), AT_ONCE):
            some = list(files)[start : start + AT_ONCE]
            found = regions_of(recognizer, {path: wanted[path] for path in some})
            _check_all_there(some, found)
            for path in some:
                with new_file(Path(folder) / files[path]) as file:
                    file.write_bytes(region_sheet(path, found[path]))
            if progress:
                progress(start + len(some), len(files))
    terminal.say(f"Written: {len(files)} pictures of where labels are seen, in {folder}")


def file_names(paths: Sequence[str]) -> list[str]:
    """A name for each picture; where two are called alike the later ones are counted.

    Case makes no difference, for there are file systems to which it makes none. Long names are cut.

    Example:
        >>> file_names(["a/cat.jpg", "b/cat.png", "b/dog.png"])
        ['cat.where.png', 'cat-2.where.png', 'dog.where.png']
    """
    seen: Counter[str] = Counter()
    names: list[str] = []
    for path in paths:
        name = stem = _short(Path(path).stem)
        while seen[name.casefold()]:
            seen[stem.casefold()] += 1
            name = f"{stem}-{seen[stem.casefold()]}"
        seen[name.casefold()] += 1
        names.append(f"{name}.where.png")
    return names


def _check_all_there(paths: Sequence[str], found: Mapping[str, object]) -> None:
    gone = [path for path in paths if path not in found]
    if gone:
        raise DataError(
            f"{gone[0]} was tagged and cannot be read any more, so nobody can show where. "
            "Give the command again."
        )


def _short(stem: str) -> str:
    """As much of a name as leaves room for what is added to it."""
    while len(os.fsencode(stem)) > LONGEST:
        stem = stem[:-1]
    return stem
