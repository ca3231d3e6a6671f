"""Query language for wanted and unwanted labels: ``fork & apple & !knife``.

    query = term { ("&" | "and") term }
    term  = [ "!" | "not" ] name
    name  = words | "words in quotes"

Here { } encloses a part that may be repeated or omitted, and [ ] encloses an optional part.

A name may contain spaces without quotes: ``hot dog & !coffee``. A name that contains an operator
(``&``, ``!``, a quote, the words *and* or *not* in any case) is written in double quotes. A quote
inside the name is doubled: ``"black and white" & !"12"" record"``. Repeated terms are removed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from unicodedata import normalize

from surelabel.counts import format_count
from surelabel.errors import InputError, UnknownName
from surelabel.label_aliases import comparable_spelling, list_labels

MAX_QUERY_LENGTH = 10_000  # characters; limits the parsing time of untrusted queries
_TOKEN = re.compile(r'\s+|(?P<sign>[&!])|"(?P<quoted>(?:[^"]|"")*+)"|(?P<word>[^\s&!"]+)')
_SIGNS = {"and": "&", "not": "!"}


@dataclass(frozen=True)
class Query:
    """Query for images in which some labels are positive and other labels are negative.

    Attributes:
        wanted: Distinct names of the labels that must be positive.
        unwanted: Distinct names of the labels that must be negative.

    Raises:
        InputError: If there is no label, a name is empty, or a name occurs twice.
    """

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        terms = self.wanted + self.unwanted
        if not terms:
            raise InputError(
                "A query must contain at least one label, as in: fork & !knife; got no label. "
                "Add a label."
            )
        if not all(terms):
            raise InputError(
                "Label names in a query must not be empty; got an empty name. Write the name of "
                "the label."
            )
        both = sorted(set(self.wanted) & set(self.unwanted))
        if both:
            raise InputError(
                f"A label must be either wanted or unwanted; {both[0]!r} is both, so no image can "
                f"match. Remove one of the two terms."
            )
        if len(set(terms)) < len(terms):
            raise InputError(
                f"Labels of a query must be distinct; got {terms}. Remove the repeated labels."
            )

    def __str__(self) -> str:
        """Return the query as a string that `parse` accepts."""
        signed = [_quote_query_label(term) for term in self.wanted]
        return " & ".join(signed + ["!" + _quote_query_label(term) for term in self.unwanted])


def parse(text: str) -> Query:
    """Parse a query string.

    Args:
        text: Query such as ``fork & apple & !knife`` or ``fork and apple and not knife``.

    Returns:
        The query, with distinct labels in the order of their first occurrence.

    Raises:
        InputError: If the text is empty or too long, a quote is not closed, a name is missing, or a
            label is both wanted and unwanted.

    Example:
        >>> parse("hot dog & !coffee")
        Query(wanted=('hot dog',), unwanted=('coffee',))
        >>> print(parse('fork AND NOT "salt and pepper"'))
        fork & !"salt and pepper"
    """
    if len(text) > MAX_QUERY_LENGTH:
        raise InputError(
            f"A query must have at most {MAX_QUERY_LENGTH:,} characters; got {len(text):,}. Use "
            f"fewer labels."
        )
    wanted: dict[str, None] = {}
    unwanted: dict[str, None] = {}
    if text.strip():
        for is_negated, name in _query_terms(text):
            (unwanted if is_negated else wanted)[name] = None
    return Query(tuple(wanted), tuple(unwanted))


def query_to_columns(query: Query, names: Sequence[str]) -> list[tuple[int, int]]:
    """Convert the labels of a query to column numbers with signs.

    A label of the query is searched in ``names`` without changes, then after Unicode normalization
    (NFC), then ignoring case and marks of the writing direction if only one name matches.

    Args:
        query: Query to convert.
        names: Label names of the index, length c.

    Returns:
        ``(column, sign)`` of each term, wanted (+1) before unwanted (-1).

    Raises:
        UnknownName: If a label is not in ``names``. The message suggests similar names.
        InputError: If two terms are different spellings of one name.

    Example:
        >>> query_to_columns(parse("apple & !knife"), ["knife", "fork", "apple"])
        [(2, 1), (0, -1)]
    """
    columns = {normalize("NFC", name): column for column, name in enumerate(names)}
    columns |= {name: column for column, name in enumerate(names)}
    signed = [(term, 1) for term in query.wanted] + [(term, -1) for term in query.unwanted]
    plain_columns = _columns_of_unique_spellings(names)
    literals = [
        (_find_query_column(term, columns, plain_columns, names), sign) for term, sign in signed
    ]
    if len({column for column, _ in literals}) < len(literals):
        raise InputError(
            f"Labels of a query must be distinct; two terms of [{query}] are the same label. "
            f"Remove one of the two terms."
        )
    return literals


def _columns_of_unique_spellings(names: Sequence[str]) -> dict[str, int]:
    """Return the column of each name that is unique without case and direction marks."""
    plain_names = [_comparable_query_label(name) for name in names]
    counts = Counter(plain_names)
    return {name: column for column, name in enumerate(plain_names) if counts[name] == 1}


def _comparable_query_label(name: str) -> str:
    return normalize("NFC", comparable_spelling(name))


def _find_query_column(
    term: str, columns: dict[str, int], plain_columns: dict[str, int], names: Sequence[str]
) -> int:
    """Return the column of a label, or raise UnknownName with similar names."""
    column = columns.get(term, columns.get(normalize("NFC", term)))
    if column is None:
        column = plain_columns.get(_comparable_query_label(term))
    if column is None:
        similar_names = get_close_matches(term[:300], names, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(map(repr, similar_names))}?" if similar_names else ""
        raise UnknownName(
            f"Label {_shorten_query_text(term)} is not in the index.{hint} Write & between two "
            "labels and ! before an unwanted label. There are "
            f"{format_count(len(names), 'label')}, such as {list_labels(names[:5])}."
        )
    return column


def _query_terms(text: str) -> Iterator[tuple[bool, str]]:
    """Iterate over ``(is_negated, name)`` of each term; raise InputError on a grammar error."""
    is_negated, name = False, ""
    for kind, token in [*_join_query_words(text), ("&", "")]:
        if kind == "name" and name:
            raise InputError(
                f"Two label names must be separated by &; & is missing before "
                f"{_shorten_query_text(token)}. Insert &."
            )
        if kind == "!" and (is_negated or name):
            raise InputError(
                "! (or the word not) must occur once, before a label name. Put a label name that "
                "contains ! or not in double quotes."
            )
        if kind == "&" and not name:
            raise InputError(
                f"Both sides of & (or the word and) need a label name; a name is missing in "
                f"{_shorten_query_text(text)}. Add the name."
            )
        if kind == "&":
            yield is_negated, name
            is_negated, name = False, ""
        elif kind == "!":
            is_negated = True
        else:
            name = token


def _join_query_words(text: str) -> Iterator[tuple[str, str]]:
    """Iterate over the tokens ``&``, ``!`` and ``name``, with adjacent words joined to one name."""
    words: list[str] = []
    for kind, token in _query_tokens(text):
        if kind == "word":
            words.append(token)
            continue
        if words:
            yield "name", " ".join(words)
            words = []
        yield kind, token
    if words:
        yield "name", " ".join(words)


def _query_tokens(text: str) -> Iterator[tuple[str, str]]:
    """Iterate over ``(kind, text)`` of the tokens: ``&``, ``!``, ``name`` (quoted) and ``word``."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:  # only an unclosed quote matches no branch
            raise InputError(
                f"Every opening quote needs a closing one; the quote at character {position + 1} "
                f"is not closed: {_shorten_query_text(text[position:])}. Close the quote."
            )
        position = match.end()
        if (sign := match["sign"]) is not None:
            yield sign, ""
        elif (quoted := match["quoted"]) is not None:
            if not quoted:
                raise InputError(
                    "Quotes must contain a label name; got an empty pair of quotes. Add the name."
                )
            yield "name", quoted.replace('""', '"')
        elif (word := match["word"]) is not None:
            yield (_SIGNS[word.lower()], "") if word.lower() in _SIGNS else ("word", word)


def _quote_query_label(name: str) -> str:
    """Return a label name in the query language, quoted if necessary."""
    is_plain = not re.search(r'[&!"]', name) and " ".join(name.split()) == name
    if is_plain and not any(word.lower() in _SIGNS for word in name.split()):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _shorten_query_text(text: str) -> str:
    """Quote a string and truncate it to at most 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
