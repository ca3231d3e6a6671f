"""Form the plurals of English nouns and noun phrases."""

import csv
import re
from functools import cache
from importlib.resources import files

_SIBILANT = re.compile(r"(?:s|x|z|ch|sh)$")
_CONSONANT_AND_Y = re.compile(r"[^aeiou]y$")
_CONSONANT_AND_O = re.compile(r"[^aeiou]o$")
_PREPOSITIONS = ("of", "in")


def plural_phrases(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the plurals of a noun phrase; only the head of the phrase changes.

    The head is the word before "of" or "in", as in "glasses of wine", and otherwise the last word.

    Args:
        words: Words of the phrase in lower case, at least one.

    Example:
        >>> plural_phrases(("cup", "of", "tea"))
        [('cups', 'of', 'tea')]
    """
    head = next(
        (i - 1 for i, word in enumerate(words) if i > 0 and word in _PREPOSITIONS), len(words) - 1
    )
    return [(*words[:head], plural, *words[head + 1 :]) for plural in plural_nouns(words[head])]


def plural_nouns(noun: str) -> tuple[str, ...]:
    """Return the plurals of an English noun, one for each accepted spelling.

    Irregular plurals are in ``plurals.tsv`` of this package. In this file, an entry such as
    ``-man`` applies to all words that end with ``man``, except words with an entry. A noun that
    ends with a consonant and "o" receives both "s" and "es".

    Args:
        noun: Singular in lower case. Other words receive the ending of a noun too.

    Example:
        >>> plural_nouns("bus"), plural_nouns("policeman"), plural_nouns("berry")
        (('buses', 'busses'), ('policemen',), ('berries',))
    """
    irregular = _irregular_plurals()
    if noun in irregular:
        return irregular[noun]
    for start in range(len(noun)):
        if plurals := irregular.get(f"-{noun[start:]}"):
            return tuple(noun[:start] + plural for plural in plurals)
    if _SIBILANT.search(noun):
        return (f"{noun}es",)
    if _CONSONANT_AND_Y.search(noun):
        return (f"{noun[:-1]}ies",)
    if _CONSONANT_AND_O.search(noun):
        return f"{noun}s", f"{noun}es"
    return (f"{noun}s",)


@cache
def _irregular_plurals() -> dict[str, tuple[str, ...]]:
    text = files("surelabel.data").joinpath("plurals.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return {row["singular"]: tuple(row["plurals"].split("|")) for row in rows}
