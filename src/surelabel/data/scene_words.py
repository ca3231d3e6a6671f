"""Load the vocabulary of generated scenes: names, emoji characters and themes of the objects."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from surelabel.errors import InputError, UnknownName
from surelabel.file_readers import read_text


@dataclass(frozen=True)
class Word:
    """Word of the scene vocabulary: an object and its emoji.

    Attributes:
        name: Name of the object in everyday English, derived from the Unicode name of the emoji.
        character: Emoji character of the object.
        theme: Group of objects that often co-occur.
        part: Class of the object in the zero-shot split of ``scenes-80``: ``seen``, ``unseen`` or
            ``unused``. If the object is not in ``scenes-80``, the value is an empty string.
    """

    name: str
    character: str
    theme: str
    part: str


@cache
def all_scene_words() -> tuple[Word, ...]:
    """Return all words of ``scenes-all``, grouped by theme."""
    text = files("surelabel.data").joinpath("words.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return tuple(Word(r["word"], r["character"], r["theme"], r["scenes_80"]) for r in rows)


def read_scene_vocabulary(name: str | Path) -> tuple[Word, ...]:
    """Return the words of a scene vocabulary, in the order of the file and without repetitions.

    Args:
        name: Name ``scenes-80`` or ``scenes-all``, or the path of a text file with one word per
            line.

    Raises:
        UnknownName: If a word of the file is not in ``scenes-all``.
        InputError: If the file has fewer than two words.
        DataError: If the file cannot be read.
    """
    if name == "scenes-all":
        return all_scene_words()
    if name == "scenes-80":
        return tuple(w for w in all_scene_words() if w.part)
    remedy = "Give scenes-80, scenes-all or a text file with one word per line."
    lines = read_text(name, remedy=remedy).splitlines()
    names = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    known = {w.name: w for w in all_scene_words()}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise UnknownName(
            f"Vocabulary words must be in scenes-all; got {', '.join(map(repr, unknown[:5]))}. "
            f"`surelabel show words` lists the {len(known)} words."
        )
    if len(names) < 2:
        raise InputError(
            f"A vocabulary must have at least two words; got {len(names)} in {name}. Add words."
        )
    return tuple(known[n] for n in names)
