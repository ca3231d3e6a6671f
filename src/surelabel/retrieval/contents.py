"""``index.json``: the one file that says what belongs to an index. Replaced last, and whole."""

import json
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surelabel.errors import DataError
from surelabel.files import new_file
from surelabel.retrieval.lock import LOCK
from surelabel.retrieval.shards import Shard

VERSION = 1
_OURS = re.compile(
    r"\.?(?:(?:rows|logits|scores|order|checksums|features)-(\d{3,})\.(?:parquet|npy)|index\.json)"
    r"(?:\.\d+\.new)?|" + re.escape(LOCK)
)


@dataclass(frozen=True)
class Contents:
    """What an index holds.

    Attributes:
        names: The labels, ``c`` of them.
        model: Fingerprint of the recognizer.
        calibration: What made the log-odds trustworthy, in words.
        shards: The rows.
        skipped: Pictures that could not be read, and why.
        revision: Another one after every change.
    """

    names: tuple[str, ...]
    model: str
    calibration: str
    shards: tuple[Shard, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    revision: str = field(default_factory=lambda: secrets.token_hex(8))


def save(folder: Path, contents: Contents) -> None:
    """Make these the contents of the folder, then remove files that no longer belong to it."""
    fields = {
        "format": "surelabel index",
        "version": VERSION,
        "revision": contents.revision,
        "pictures": sum(map(len, contents.shards)),
        "names": contents.names,
        "model": contents.model,
        "calibration": contents.calibration,
        "shards": [shard.entry for shard in contents.shards],
        "skipped": contents.skipped,
    }
    with new_file(folder / "index.json") as file:
        file.write_text(json.dumps(fields, indent=1), encoding="ascii")
    keep = {"index.json", LOCK}.union(*(shard.files for shard in contents.shards))
    for leftover in (file for file in _own_files(folder) if file.name not in keep):
        with suppress(PermissionError):  # mapped by a reader on Windows: the next writer sweeps it
            leftover.unlink(missing_ok=True)


def load(folder: Path) -> Contents:
    """Read ``index.json``; open no shard.

    Raises:
        DataError: there is none, it cannot be read, or its version is newer than ours.
    """
    file = folder / "index.json"
    if not file.is_file():
        raise DataError(
            f"{folder} must be an index, a folder with an index.json. It has none: build it with "
            f"`surelabel index`, or check the path."
        )
    try:
        fields = json.loads(file.read_text(encoding="ascii"))
        if fields["version"] > VERSION:
            raise DataError(
                f"{file} has version {fields['version']}, this package reads up to {VERSION}: "
                f"install a newer surelabel."
            )
        return _checked(folder, fields)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise DataError(
            f"{file} is damaged: {what}. Put the file back, or build the index again "
            f"(`surelabel index`)."
        ) from error


def _checked(folder: Path, fields: dict[str, Any]) -> Contents:
    """Contents whose every part has the right type and range; raises ValueError else."""
    words = [fields[name] for name in ("model", "calibration", "revision")]
    names, skipped, entries = fields["names"], fields["skipped"], fields["shards"]
    if not _are_texts(words):
        raise ValueError("model, calibration and revision must be texts")
    if not _are_texts(names) or not all(names) or len(set(names)) < len(names):
        raise ValueError("names must be a list of texts, each once")
    if not isinstance(skipped, dict) or not _are_texts([*skipped.values()]):
        raise ValueError("skipped must say a reason for each path")
    if not isinstance(entries, list):
        raise ValueError("shards must be a list")
    shards = tuple(Shard.from_entry(folder, entry) for entry in entries)
    if len({shard.number for shard in shards}) < len(shards):
        raise ValueError("a shard is listed twice")
    model, calibration, revision = words
    return Contents(tuple(names), model, calibration, shards, skipped, revision)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def check_usable(folder: Path) -> None:
    """Refuse a folder that holds anything but an index, or the leftovers of one.

    Raises:
        DataError: it does.
    """
    others: Sequence[Path] = []
    if folder.is_dir():
        others = sorted(set(folder.iterdir()) - set(_own_files(folder)))
    elif folder.exists():
        others = [folder]
    if others:
        raise DataError(
            f"An index is written to a new or empty folder, or over an older index. {folder} "
            f"holds {others[0].name}: choose another folder."
        )


def free_number(folder: Path) -> int:
    """A shard number that no file in the folder has, not even a leftover."""
    found = [_OURS.fullmatch(file.name) for file in _own_files(folder)]
    return 1 + max((int(match[1]) for match in found if match and match[1]), default=-1)


def _own_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [file for file in folder.iterdir() if _OURS.fullmatch(file.name)]
