"""The query language: ``fork & apple & !knife``.

    query = term { ("&" | "and") term }
    term  = { no sign | "!" | "not" } name
    name  = words | "words in quotes"

A name may hold spaces without quotes: ``hot dog & !coffee``. A name that holds an operator (``&``,
``!``, a quote, the words *and* or *not* in any case) stands in double quotes; a quote inside them
is written twice: ``"black and white" & !"12"" record"``. A term said twice counts once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from unicodedata import normalize

from surelabel.errors import InputError, UnknownName

LONGEST = 10_000  # characters; a query comes from strangers
_TOKEN = re.compile(r'\s+|(?P<sign>[&!])|"(?P<quoted>(?:[^"]|"")*+)"|(?P<word>[^\s&!"]+)')
_SIGNS = {"and": "&", "not": "!"}


@dataclass(frozen=True)
class Query:
    """Labels that must be in a picture and labels that must not.

    Attributes:
        wanted: Label names, each once.
        unwanted: Label names, each once; none of them wanted.

    Raises:
        InputError: no label at all, an empty name, or a name on both sides or twice.
    """

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        terms = self.wanted + self.unwanted
        if not terms:
            raise InputError(
                "A query must name at least one label, as in: fork & !knife. It names none."
            )
        if not all(terms):
            raise InputError(
                "Every name in a query must have a letter. One is empty: write it out."
            )
        both = sorted(set(self.wanted) & set(self.unwanted))
        if both:
            raise InputError(
                f"A label is either wanted or unwanted. {both[0]!r} is both, so no picture can "
                f"match: drop one of the two."
            )
        if len(set(terms)) < len(terms):
            raise InputError(f"A query names every label once. Got: {terms}.")

    def __str__(self) -> str:
        """The query in the language that `parse` reads."""
        signed = [_written(term) for term in self.wanted]
        return " & ".join(signed + ["!" + _written(term) for term in self.unwanted])


def parse(text: str) -> Query:
    """Read a query.

    Args:
        text: As in ``fork & apple & !knife`` or ``fork and apple and not knife``.

    Returns:
        The labels in the order of the text, each once.

    Raises:
        InputError: the text is empty or too long, a quote is not closed, a name is missing, a
            label is both wanted and unwanted. The message says where.

    Example:
        >>> parse("hot dog & !coffee")
        Query(wanted=('hot dog',), unwanted=('coffee',))
        >>> print(parse('fork AND NOT "salt and pepper"'))
        fork & !"salt and pepper"
    """
    if len(text) > LONGEST:
        raise InputError(
            f"A query has at most {LONGEST:,} characters. This one has {len(text):,}: ask for "
            f"fewer labels."
        )
    wanted: dict[str, None] = {}
    unwanted: dict[str, None] = {}
    if text.strip():
        for negated, name in _terms(text):
            (unwanted if negated else wanted)[name] = None
    return Query(tuple(wanted), tuple(unwanted))


def resolve(query: Query, names: Sequence[str]) -> list[tuple[int, int]]:
    """Find the labels of a query among the names of an index.

    A name matches as it is written, or in another Unicode form of the same letters (NFC).

    Args:
        query: What is asked for.
        names: The labels that are there, ``c`` of them.

    Returns:
        ``(column, sign)`` of each term, wanted (+1) before unwanted (-1).

    Raises:
        UnknownName: a label is not among the names; the nearest ones are offered.
        InputError: two terms are two spellings of one name.

    Example:
        >>> resolve(parse("apple & !knife"), ["knife", "fork", "apple"])
        [(2, 1), (0, -1)]
    """
    columns = {normalize("NFC", name): column for column, name in enumerate(names)}
    columns |= {name: column for column, name in enumerate(names)}
    signed = [(term, 1) for term in query.wanted] + [(term, -1) for term in query.unwanted]
    literals = [(_column(term, columns, names), sign) for term, sign in signed]
    if len({column for column, _ in literals}) < len(literals):
        raise InputError(f"A query names every label once. Two terms of [{query}] are one label.")
    return literals


def _column(term: str, columns: dict[str, int], names: Sequence[str]) -> int:
    column = columns.get(term, columns.get(normalize("NFC", term)))
    if column is None:
        near = get_close_matches(term[:300], names, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UnknownName(
            f"No label is called {_shown(term)}.{hint} Between two labels goes &, before an "
            f"unwanted one !. There are {len(names)} labels, such as {', '.join(names[:5])}."
        )
    return column


def _terms(text: str) -> Iterator[tuple[bool, str]]:
    """``(negated, name)`` of each term; raises where the grammar is broken."""
    negated, name = False, ""
    for sign, piece in [*_pieces(text), ("&", "")]:
        if sign == "name" and name:
            raise InputError(f"Between two names goes &. It is missing before {_shown(piece)}.")
        if sign == "!" and (negated or name):
            raise InputError(
                "A ! (or the word not) stands once, before a name. Quote names with !."
            )
        if sign == "&" and not name:
            raise InputError(
                f"On both sides of & (or the word and) stands a name. One is missing in "
                f"{_shown(text)}."
            )
        if sign == "&":
            yield negated, name
            negated, name = False, ""
        elif sign == "!":
            negated = True
        else:
            name = piece


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """``("&", "")``, ``("!", "")`` and ``("name", …)``; words in a row make one name."""
    words: list[str] = []
    for kind, piece in _tokens(text):
        if kind == "word":
            words.append(piece)
            continue
        if words:
            yield "name", " ".join(words)
            words = []
        yield kind, piece
    if words:
        yield "name", " ".join(words)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:  # only a quote that nothing closes matches no branch
            raise InputError(
                f"Every opening quote needs a closing one. The one at character {place + 1} has "
                f"none: {_shown(text[place:])}."
            )
        place = match.end()
        if (sign := match["sign"]) is not None:
            yield sign, ""
        elif (quoted := match["quoted"]) is not None:
            if not quoted:
                raise InputError("Between two quotes stands a name. Got an empty pair of quotes.")
            yield "name", quoted.replace('""', '"')
        elif (word := match["word"]) is not None:
            yield (_SIGNS[word.lower()], "") if word.lower() in _SIGNS else ("word", word)


def _written(name: str) -> str:
    plain = not re.search(r'[&!"]', name) and " ".join(name.split()) == name
    if plain and not any(word.lower() in _SIGNS for word in name.split()):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
