"""The words of Scenes: what a generated picture may show, and which words a benchmark may see."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from surelabel.errors import DataError, InputError, UnknownName


@dataclass(frozen=True)
class Word:
    """One thing that can be drawn.

    Attributes:
        name: What people call it, from the Unicode name, cleaned for speech.
        character: The one emoji character that draws it.
        theme: The group of things it is met with.
        part: Its part in ``scenes-80``: ``seen``, ``unseen``, ``unused``, or empty outside.
    """

    name: str
    character: str
    theme: str
    part: str


@cache
def all_words() -> tuple[Word, ...]:
    """Every word of ``scenes-all``, theme by theme."""
    text = files("surelabel.data").joinpath("words.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return tuple(Word(r["word"], r["character"], r["theme"], r["scenes_80"]) for r in rows)


def vocabulary(name: str | Path) -> tuple[Word, ...]:
    """The words of ``scenes-80``, ``scenes-all``, or of a file with one word a line.

    Raises:
        UnknownName: a word of the file is none that Scenes can draw.
        InputError: fewer than two words: a scene needs something beside its main object.
        DataError: the file cannot be read.
    """
    if name == "scenes-all":
        return all_words()
    if name == "scenes-80":
        return tuple(w for w in all_words() if w.part)
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"A vocabulary is scenes-80, scenes-all or a text file with one word a line. "
            f"Got {str(name)!r}: {error}."
        ) from error
    wanted = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    known = {w.name: w for w in all_words()}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UnknownName(
            f"Scenes cannot draw {', '.join(map(repr, unknown[:5]))}. "
            f"`surelabel show words` lists its {len(known)} words."
        )
    if len(wanted) < 2:
        raise InputError(f"A vocabulary needs two words or more. Got {len(wanted)} in {name}.")
    return tuple(known[name] for name in wanted)
