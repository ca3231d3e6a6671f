"""Resolve the labels of a query to columns of an index."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from unicodedata import normalize

from surelabel.counts import format_count
from surelabel.errors import InputError, UnknownName
from surelabel.label_aliases import comparable_spelling, list_labels
from surelabel.retrieval.formula import (
    Conjunction,
    FilterLiteral,
    Formula,
    LabelLiteral,
    make_conjunction,
    make_disjunction,
)
from surelabel.retrieval.query import Query
from surelabel.retrieval.query_terms import LabelTerm, LabelThreshold, QueryFilter, quote_label


@dataclass(frozen=True)
class LabelBound:
    """Threshold of a label, given by its column.

    Attributes:
        column: Column of the label.
        bound: Bound of the probability, in [0, 1].
        is_minimum: If True, the probability must be at least the bound; otherwise, it must be below
            the bound.
    """

    column: int
    bound: float
    is_minimum: bool


@dataclass(frozen=True)
class ResolvedQuery:
    """Query whose labels are columns of an index.

    Attributes:
        formula: Formula whose labels are columns. In an index of c labels, the columns from c on
            are the sentences.
        filters: Filters of the formula, by number. A threshold contains the column of its label.
        titles: Name of each label, or text of each sentence in the query language, by column.
            Wanted terms are first.
        sentences: Sentences of the query, without quotes.
    """

    formula: Formula
    filters: tuple[QueryFilter | LabelBound, ...]
    titles: Mapping[int, str]
    sentences: tuple[str, ...] = ()

    @property
    def columns(self) -> list[int]:
        """Return the columns of labels and sentences that a search reads, each once."""
        bounds = [item.column for item in self.filters if isinstance(item, LabelBound)]
        return list(dict.fromkeys([*self.titles, *bounds]))


def resolve_query(query: Query, names: Sequence[str]) -> ResolvedQuery:
    """Return a query whose labels are columns of an index.

    A label of the query is first compared with ``names`` without changes, then after Unicode
    normalization (NFC). Then case and marks of the writing direction are ignored, if only one name
    matches.

    Args:
        query: Query.
        names: Label names of the index, length c.

    Raises:
        UnknownName: If a label is not in ``names``. The message suggests similar names.
        InputError: If two terms are different spellings of one name.

    Example:
        >>> from surelabel.retrieval import parse
        >>> resolve_query(parse("apple & !Knife"), ["knife", "fork", "apple"]).titles
        {2: 'apple', 0: 'knife'}
    """
    lookup = _LabelLookup(names)
    columns, titles, sentences = list[int](), dict[int, str](), list[str]()
    for term in query.terms:
        if isinstance(term, LabelTerm):
            column = lookup.column_of(term.name)
            titles[column] = names[column]
        else:
            column = len(names) + len(sentences)
            sentences.append(term.text)
            titles[column] = str(term)
        columns.append(column)
    if len(set(columns)) < len(columns) or len(set(titles.values())) < len(titles):
        raise InputError(
            f"Different terms of a query must be different labels; two terms of [{query}] are the "
            "same label. Use only one spelling of this label."
        )
    filters = tuple(
        LabelBound(lookup.column_of(item.name), item.bound, item.is_minimum)
        if isinstance(item, LabelThreshold)
        else item
        for item in query.filters
    )
    number_of = {term: number for number, term in enumerate(query.terms)}
    order = dict.fromkeys(columns[number_of[term]] for term, _ in query.signed_terms)
    return ResolvedQuery(
        _renumber_labels(query.formula, columns),
        filters,
        {column: titles[column] for column in order},
        tuple(sentences),
    )


def resolve_label_query(query: Query, names: Sequence[str]) -> ResolvedQuery:
    """Resolve a query that must contain only labels; see `resolve_query`.

    Raises:
        UnknownName: If a label is not in ``names``.
        InputError: If the query contains sentences, filters or ``like:``. Also if two terms are
            different spellings of one name.
    """
    resolved = resolve_query(query, names)
    others = [*map(str, query.filters), *(t for t in map(str, query.terms) if t.startswith("~"))]
    if query.like is not None:
        others.append(str(query.like))
    if others:
        raise InputError(
            "A query for an evaluation or a guarantee must contain only labels; got "
            f"{others[0]}. Remove filters, sentences and like: terms."
        )
    return resolved


class _LabelLookup:
    """Look-up table of the columns of labels by their spelling."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._columns = {normalize("NFC", name): column for column, name in enumerate(names)}
        self._columns |= {name: column for column, name in enumerate(names)}

    @cached_property
    def _comparable(self) -> dict[str, int]:
        """Return columns by comparable spelling, without spellings that several labels have."""
        comparable = [_comparable_query_label(name) for name in self._names]
        counts = Counter(comparable)
        return {name: column for column, name in enumerate(comparable) if counts[name] == 1}

    def column_of(self, name: str) -> int:
        """Return the column of a label, or raise UnknownName with similar names."""
        column = self._columns.get(name, self._columns.get(normalize("NFC", name)))
        if column is None:
            column = self._comparable.get(_comparable_query_label(name))
        if column is None:
            names = self._names
            similar = get_close_matches(name[:300], names, n=3, cutoff=0.5)
            similar = similar or [other for other in names if _is_part_of_quoted(name, other)][:3]
            quoted = [quote_label(other) for other in similar]
            texts = [
                text if text != other else repr(other)
                for text, other in zip(quoted, similar, strict=True)
            ]
            hint = f" Did you mean {' or '.join(texts)}?" if similar else ""
            raise UnknownName(
                f"Label {shorten_label(name)} is not in the index.{hint} Write & or | between two "
                "labels and ! before an unwanted label. The index has "
                f"{format_count(len(names), 'label')}, such as {list_labels(names[:5])}."
            )
        return column


def _is_part_of_quoted(name: str, other: str) -> bool:
    """Return whether the label ``other`` contains a name and must be written in quotes."""
    return name in other and quote_label(other) != other


def _comparable_query_label(name: str) -> str:
    return normalize("NFC", comparable_spelling(name))


def shorten_label(text: str) -> str:
    """Truncate a string to at most 60 characters, and return its ``repr``."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _renumber_labels(formula: Formula, columns: Sequence[int]) -> Formula:
    """Return a formula in which the number of each label is replaced by its column."""
    if isinstance(formula, LabelLiteral):
        return LabelLiteral(columns[formula.column], formula.sign)
    if isinstance(formula, FilterLiteral):
        return formula
    terms = [_renumber_labels(term, columns) for term in formula.terms]
    make = make_conjunction if isinstance(formula, Conjunction) else make_disjunction
    return make(terms)
