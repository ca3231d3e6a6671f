r"""Parse queries in the query language, such as ``(fork | spoon) & !knife & date>=2024``.

    query       = conjunction { "|" conjunction }
    conjunction = operand { ("&" | "and") operand }
    operand     = ("!" | "not") operand | "(" query ")" | term
    term        = label | label (">" | ">=" | "<" | "<=") number | "~" quoted | "path:" pattern
                | ("date" | "width" | "height") ("<" | "<=" | "=" | ">=" | ">") value
                | "like:" path [ "#" number ]
    label       = words | quoted
    quoted      = words in double quotes, in which a quote is doubled

Here { } encloses a part that can be repeated or omitted, and [ ] encloses an optional part.

``!`` binds more tightly than ``&``, and ``&`` more tightly than ``|``. ``and`` and ``not`` are
operators, whose case is ignored; ``or`` is part of a label. A label can contain spaces without
quotes, as in ``hot dog & !coffee``. A label that contains one of ``& | ! ( ) < > ~ : "`` or an
operator word is written in quotes. A pattern or a path that contains spaces, ``& | ( )`` or a quote
is also written in quotes.

``dog>0.8`` selects images whose probability of *dog* is at least 0.8, and makes *dog* a wanted
label; ``dog<0.8`` only selects images with a lower probability. After a label, ``>=`` means ``>``,
and ``<=`` means ``<``. ``like:`` restricts the whole search, and is therefore only allowed in the
outermost conjunction.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeVar, cast

from surelabel.errors import InputError, QuerySyntaxError
from surelabel.retrieval.formula import (
    TRUE,
    Conjunction,
    Disjunction,
    FilterLiteral,
    Formula,
    LabelLiteral,
    columns_of_formula,
    make_conjunction,
    make_disjunction,
    negate_formula,
    polarities_of_formula,
)
from surelabel.retrieval.formula_probability import (
    MAX_EXPANDED_LABELS,
    MAX_EXPANDED_LITERALS,
)
from surelabel.retrieval.query_terms import (
    DEFAULT_NEAREST,
    OPERATOR_WORDS,
    Comparison,
    FileField,
    FileFilter,
    LabelTerm,
    LabelThreshold,
    LikeTerm,
    PathFilter,
    QueryFilter,
    QueryTerm,
    SentenceTerm,
    quote_label,
)

MAX_QUERY_LENGTH = 10_000  # characters; limits the parsing time of untrusted queries
MAX_NESTING = 50  # nested parentheses and negations
MAX_SENTENCES = 12  # distinct sentences, because each sentence is scored for all images
MAX_FILTERS = 12  # distinct filters, because all combinations of their values can occur
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<operator>[&|!()~])
    | (?P<comparison>>=?|<=?(?=\s*[\d.]))
    | (?P<field>date|width|height)\s*(?P<relation><=|>=|=|<|>)\s*(?P<value>[^\s&|!()"]*)
    | (?P<prefix>path|like):(?:(?P<path>[^\s&|()"]+)|"(?P<quoted_path>(?:[^"]|"")*+)"
      (?P<count>\#[^\s&|()"]*)?)
    | "(?P<quoted>(?:[^"]|"")*+)"
    | (?P<word>(?:[^\s&|!()~"<>:]|<(?!=?\s*[\d.]))+)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TERM_OF_VERSION_1 = re.compile(r'[&!"]|\b(?:and|not)\b', re.IGNORECASE)
_SPECIAL_IN_LABEL = re.compile(r"[()|<>~:]")

_Item = TypeVar("_Item")


class QueryToken(NamedTuple):
    """Token of a query.

    Attributes:
        kind: Operator, ``end``, ``word``, ``quoted`` or ``comparison``. For a filter or ``like:``,
            its name, such as ``path``, ``like`` or ``date``.
        text: Text or value of the token.
        start: Position of the first character, from 0.
        extra: Comparison of a file filter, or ``#`` and the number of images of ``like:``. It is
            empty if there is none.
    """

    kind: str
    text: str
    start: int
    extra: str = ""


@dataclass(frozen=True)
class Query:
    """Query for images: a formula of labels, sentences and filters.

    Attributes:
        formula: Formula whose labels are ``terms``, by their number, and whose filters are
            ``filters``.
        terms: Distinct labels and sentences in the order of their first occurrence.
        filters: Distinct filters in the order of their first occurrence.
        like: Example, to which the result is restricted to similar images, or None.

    Raises:
        InputError: If a label or sentence is repeated, and there are more than 12 labels and
            sentences or 100 literals. Also if there are more than 12 filters or sentences, or if
            the query is empty.
    """

    formula: Formula
    terms: tuple[QueryTerm, ...] = ()
    filters: tuple[QueryFilter, ...] = ()
    like: LikeTerm | None = None

    def __post_init__(self) -> None:
        if not self.terms and not self.filters and self.like is None:
            raise InputError(
                "A query must contain at least one term; got none. Add a label, as in "
                "fork & !knife."
            )
        if len(self.filters) > MAX_FILTERS:
            raise InputError(
                f"A query must have at most {MAX_FILTERS} filters; got {len(self.filters)}. Remove "
                "filters."
            )
        n_sentences = sum(isinstance(term, SentenceTerm) for term in self.terms)
        if n_sentences > MAX_SENTENCES:
            raise InputError(
                f"A query must have at most {MAX_SENTENCES} sentences; got {n_sentences}. Remove "
                "sentences."
            )
        check_repeated_labels(self.formula)

    @classmethod
    def of_labels(cls, wanted: Sequence[str], unwanted: Sequence[str] = ()) -> "Query":
        """Return the query for images with positive wanted labels and negative unwanted labels.

        Args:
            wanted: Names of the labels that must be positive.
            unwanted: Names of the labels that must be negative.

        Raises:
            InputError: If there is no label, or a name is empty. Also if a name is repeated with
                the other sign, and there are more than 12 names.

        Example:
            >>> print(Query.of_labels(["fork", "hot dog"], ["salt and pepper"]))
            fork & hot dog & !"salt and pepper"
        """
        if not all([*wanted, *unwanted]):
            raise InputError(
                "Label names in a query must not be empty; got an empty name. Write the name of "
                "the label."
            )
        terms: dict[LabelTerm, int] = {}
        literals = [
            LabelLiteral(_number_in(terms, LabelTerm(name)), sign)
            for labels, sign in ((wanted, 1), (unwanted, -1))
            for name in labels
        ]
        return cls(make_conjunction(literals), tuple(terms))

    @property
    def signed_terms(self) -> list[tuple[QueryTerm, int]]:
        """Return the terms with their signs: first signs 1 and 0 (both signs), then -1.

        Terms of equal sign are in the order of the formula.
        """
        signs = polarities_of_formula(self.formula)
        order = sorted(signs, key=lambda number: signs[number] < 0)
        return [(self.terms[number], signs[number]) for number in order]

    def __str__(self) -> str:
        """Return the query as a string that `parse` accepts."""
        texts = [] if self.like is None else [str(self.like)]
        if self.formula != TRUE:
            terms = dict(enumerate(map(str, self.terms)))
            implied = {
                (number, column)
                for number, threshold in enumerate(self.filters)
                if isinstance(threshold, LabelThreshold) and threshold.is_minimum
                for column, term in enumerate(self.terms)
                if term == LabelTerm(threshold.name)
            }
            filters = list(map(str, self.filters))
            formula = format_formula(self.formula, terms, filters, implied)
            is_conjunction = isinstance(self.formula, Conjunction | LabelLiteral | FilterLiteral)
            texts.append(formula if not texts or is_conjunction else f"({formula})")
        return " & ".join(texts)


def format_formula(
    formula: Formula,
    terms: Mapping[int, str],
    filters: Sequence[str] = (),
    implied: Collection[tuple[int, int]] = (),
) -> str:
    """Return a formula in the query language.

    Args:
        formula: Formula.
        terms: Labels and sentences in the query language, by column.
        filters: Filters in the query language, by number.
        implied: Number of each threshold such as ``dog>0.8``, and column of its label. The label is
            not repeated after the threshold.

    Example:
        >>> either = make_disjunction([LabelLiteral(0, 1), LabelLiteral(1, -1)])
        >>> format_formula(either, {0: "dog", 1: "cat"})
        'dog | !cat'
    """
    if isinstance(formula, LabelLiteral):
        return ("" if formula.sign > 0 else "!") + terms[formula.column]
    if isinstance(formula, FilterLiteral):
        return ("" if formula.sign > 0 else "!") + filters[formula.number]
    if isinstance(formula, Disjunction):
        parts = [format_formula(term, terms, filters, implied) for term in formula.terms]
        return " | ".join(parts) if parts else "no image"
    parts = []
    previous: Formula | None = None
    for term in formula.terms:
        is_implied = (
            isinstance(previous, FilterLiteral)
            and isinstance(term, LabelLiteral)
            and term.sign > 0
            and (previous.number, term.column) in implied
        )
        if not is_implied:
            part = format_formula(term, terms, filters, implied)
            is_literal = isinstance(term, LabelLiteral | FilterLiteral)
            parts.append(part if is_literal else f"({part})")
        previous = term
    return " & ".join(parts) if parts else "all images"


def _is_probability(text: str) -> bool:
    """Return whether a text is a number from 0 to 1."""
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def parse(text: str) -> Query:
    """Parse the text of a query.

    Args:
        text: Query such as ``fork & (apple | pear) & !knife``.

    Returns:
        The query in negation normal form, without repeated terms.

    Raises:
        QuerySyntaxError: If the text violates the grammar or is too deeply nested. The message
            states the position of the error.
        InputError: If the text is empty, has more than 10,000 characters, or contains more than 12
            filters or sentences. Also if a label or sentence is repeated, and there are more than
            12 of them or more than 100 terms.

    Example:
        >>> print(parse("hot dog & !(coffee | tea)"))
        hot dog & !coffee & !tea
        >>> print(parse('fork AND NOT "salt and pepper" & date>=2024-05'))
        fork & !"salt and pepper" & date>=2024-05
    """
    if len(text) > MAX_QUERY_LENGTH:
        raise InputError(
            f"A query must have at most {MAX_QUERY_LENGTH:,} characters; got {len(text):,}. "
            "Shorten the query."
        )
    if not text.strip():
        return Query(TRUE)
    return _QueryParser(text).parse()


def check_repeated_labels(formula: Formula) -> None:
    """Check that the expansion of a formula with repeated labels is small.

    Raises:
        InputError: If a label is repeated, and there are more than 12 labels or 100 literals.
            Sentences count as labels.
    """
    counts = columns_of_formula(formula)
    if max(counts.values(), default=0) < 2:
        return
    if len(counts) > MAX_EXPANDED_LABELS:
        raise InputError(
            f"A query in which a label is repeated must have at most {MAX_EXPANDED_LABELS} labels; "
            f"got {len(counts)}. Use each label only once, or use fewer labels."
        )
    if counts.total() > MAX_EXPANDED_LITERALS:
        raise InputError(
            f"A query in which a label is repeated must have at most {MAX_EXPANDED_LITERALS} "
            f"terms; got {counts.total()}. Use fewer terms."
        )


class _QueryParser:
    """Recursive descent parser of a query, with a limited number of nested calls."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*_join_label_words(self._query_tokens()), QueryToken("end", "", len(text))]
        self._position = 0
        self._terms: dict[QueryTerm, int] = {}
        self._filters: dict[QueryFilter, int] = {}
        self._like: LikeTerm | None = None
        self._like_start = 0

    def parse(self) -> Query:
        formulas = self._conjunctions(0, is_negated=False)
        token = self._token
        if token.kind == ")":
            self._fail(token.start, "This ) has no matching ( before it", "Add ( or remove ).")
        if token.kind != "end":
            self._fail_operator(token)
        if self._like is not None and len(formulas) > 1:
            self._fail_like(self._like_start)
        return Query(
            make_disjunction(formulas), tuple(self._terms), tuple(self._filters), self._like
        )

    @property
    def _token(self) -> QueryToken:
        return self._tokens[self._position]

    def _next(self) -> QueryToken:
        token = self._token
        self._position += 1
        return token

    def _conjunctions(self, depth: int, *, is_negated: bool) -> list[Formula]:
        """Parse conjunctions that are separated by ``|``, up to another operator or the end."""
        formulas = [self._conjunction(depth, is_negated=is_negated)]
        while self._token.kind == "|":
            self._next()
            formulas.append(self._conjunction(depth, is_negated=is_negated))
        return formulas

    def _conjunction(self, depth: int, *, is_negated: bool) -> Formula:
        terms = [self._operand(depth, is_negated=is_negated)]
        while self._token.kind == "&":
            self._next()
            terms.append(self._operand(depth, is_negated=is_negated))
        return make_conjunction(terms)

    def _operand(self, depth: int, *, is_negated: bool) -> Formula:
        token = self._next()
        if token.kind in ("!", "(") and depth == MAX_NESTING:
            self._fail(
                token.start,
                f"Parentheses and negations must have at most {MAX_NESTING} nested levels; got "
                "more levels",
                "Remove parentheses or negations.",
            )
        if token.kind == "!":
            return negate_formula(self._operand(depth + 1, is_negated=True))
        if token.kind == "(":
            formula = make_disjunction(self._conjunctions(depth + 1, is_negated=is_negated))
            if self._token.kind == "end":
                self._fail(token.start, "This ( has no matching ) after it", "Add ) or remove (.")
            if self._token.kind != ")":
                self._fail_operator(self._token)
            self._next()
            return formula
        return self._term(token, depth, is_negated=is_negated)

    def _term(self, token: QueryToken, depth: int, *, is_negated: bool) -> Formula:
        if token.kind in ("word", "quoted"):
            if self._token.kind == "comparison":
                return self._threshold(token, is_negated=is_negated)
            return LabelLiteral(_number_in(self._terms, LabelTerm(token.text)), 1)
        if token.kind == "~":
            return self._sentence(token)
        if token.kind == "path":
            return FilterLiteral(_number_in(self._filters, PathFilter(token.text)))
        if token.kind in ("date", "width", "height"):
            return self._file_filter(token)
        if token.kind == "like":
            if depth or is_negated:
                self._fail_like(token.start)
            return self._like_term(token)
        what = "the query ends" if token.kind == "end" else f"got {token.kind}"
        return self._fail(
            token.start, f"A label or another term is expected here; {what}", "Add a term."
        )

    def _threshold(self, label: QueryToken, *, is_negated: bool) -> Formula:
        comparison, number = self._next(), self._next()
        if number.kind != "word" or not _is_probability(number.text):
            self._fail(
                number.start,
                f"{comparison.text} must be followed by a probability from 0 to 1",
                f"Write a probability, as in {quote_label(label.text)}>0.8."
                + self._quoted_label(comparison.start),
            )
        bound, is_minimum = float(number.text), comparison.text.startswith(">")
        threshold = LabelThreshold(label.text, bound, is_minimum)
        if is_negated:
            opposite = LabelThreshold(label.text, bound, not is_minimum)
            self._fail(
                label.start,
                f"A threshold cannot be negated; got ! with {threshold}",
                f"Write {opposite} without ! to select the other images.",
            )
        literal = FilterLiteral(_number_in(self._filters, threshold))
        if not is_minimum:
            return literal
        term = LabelLiteral(_number_in(self._terms, LabelTerm(label.text)), 1)
        return Conjunction((literal, term))

    def _sentence(self, token: QueryToken) -> Formula:
        sentence = self._next()
        if sentence.kind != "quoted" or not sentence.text.strip():
            self._fail(
                token.start,
                "~ must be followed by a sentence in quotes",
                'Write the sentence as in ~"children on a beach".'
                + self._quoted_label(token.start),
            )
        return LabelLiteral(_number_in(self._terms, SentenceTerm(sentence.text.strip())), 1)

    def _file_filter(self, token: QueryToken) -> Formula:
        try:
            file_filter = FileFilter(
                cast(FileField, token.kind), cast(Comparison, token.extra), token.text
            )
        except ValueError as error:
            is_form = token.kind != "date" or "form" in str(error)
            reason = str(error) if is_form else "date must exist in the calendar"
            self._fail(
                token.start,
                f"{reason}; got {token.text!r}",
                "Write a filter as in date>=2024-05-31 or width>2000. To search for the label "
                f'{token.kind}, write "{token.kind}" in quotes.',
            )
        return FilterLiteral(_number_in(self._filters, file_filter))

    def _like_term(self, token: QueryToken) -> Formula:
        if self._like is not None:
            self._fail(
                token.start, "A query must have at most one like: term; got two", "Keep one."
            )
        count = token.extra.removeprefix("#") if token.extra else str(DEFAULT_NEAREST)
        if not re.fullmatch(r"[1-9]\d{0,8}", count, re.ASCII):
            self._fail(
                token.start,
                f"The number of images after # must be a whole number >= 1; got {count!r}",
                "Write the number as in like:example.jpg#500.",
            )
        self._like, self._like_start = LikeTerm(token.text, int(count)), token.start
        return TRUE

    def _query_tokens(self) -> Iterator[QueryToken]:
        """Yield the tokens of the text, or raise an error at a character that starts no token."""
        position = 0
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                self._fail_character(position)
            kind = match.lastgroup if match["field"] is None else "field"
            if operator := match["operator"]:
                yield QueryToken(operator, operator, position)
            elif match["field"] is not None:
                values = match["value"], position, match["relation"]
                yield QueryToken(match["field"].lower(), *values)
            elif prefix := match["prefix"]:
                yield self._path_token(prefix.lower(), match, position)
            elif kind == "quoted":
                if not match["quoted"]:
                    self._fail(position, "Quotes must contain text; got no text", "Add text.")
                yield QueryToken("quoted", match["quoted"].replace('""', '"'), position)
            elif kind == "word":
                operator = OPERATOR_WORDS.get(match["word"].lower(), "")
                yield QueryToken(operator or "word", match["word"], position)
            elif kind == "comparison":
                yield QueryToken("comparison", match["comparison"], position)
            position = match.end()

    def _path_token(self, prefix: str, match: "re.Match[str]", position: int) -> QueryToken:
        """Return the token of ``path:`` or ``like:``."""
        path, count = match["path"], match["count"] or ""
        if path is None:
            path = match["quoted_path"].replace('""', '"')
            if not path or (count and prefix == "path"):
                self._fail(
                    position,
                    f"{prefix}: must be followed by text in quotes, and # is valid only in like:",
                    'Write the term as in path:"my photos/*" or like:"my photo.jpg"#500.',
                )
        elif prefix == "like" and (number := re.search(r"#[^#]*$", path)):
            path, count = path[: number.start()], number[0]
        if not path:
            self._fail(position, "like: needs a path before #", "Write the path of an image.")
        return QueryToken(prefix, path, position, count)

    def _fail_character(self, position: int) -> NoReturn:
        character = self._text[position]
        if character == '"':
            self._fail(position, "This quote has no closing quote", "Add a quote.")
        start = self._text[: position + 1]
        if re.search(r"\b(?:path|like):$", start, re.IGNORECASE):
            prefix = start[-5:]
            self._fail(
                position,
                f"{prefix} must be followed directly by a pattern or a path",
                "Write the term as in path:*.jpg or like:example.jpg.",
            )
        self._fail(
            position,
            f"{character} is valid only in a filter, in like: or in a quoted label",
            self._quoted_label(position).strip()
            or f"Remove {character}, or write the label in quotes.",
        )

    def _fail_operator(self, token: QueryToken) -> NoReturn:
        self._fail(
            token.start,
            "Two terms must be separated by & or |; the operator is missing",
            "Insert & or |." + self._quoted_label(token.start),
        )

    def _fail_like(self, position: int) -> NoReturn:
        self._fail(
            position,
            "like: restricts the whole search, so it must be outside of parentheses, ! and |",
            "Write the query as in like:example.jpg & (fork | spoon).",
        )

    def _fail(self, position: int, reason: str, advice: str) -> NoReturn:
        """Raise QuerySyntaxError with an excerpt of the query around a position."""
        first = max(position - 40, 0)
        excerpt = self._text[first : position + 40]
        printable = "".join(letter if letter.isprintable() else " " for letter in excerpt)
        reason = f"{reason} (character {position + 1}). {advice}"
        raise QuerySyntaxError(reason, position, printable, position - first)

    def _quoted_label(self, position: int) -> str:
        """Return advice to quote the label around a position.

        If the text there has no special character or more than 60 characters, return "".
        """
        ends = [match.span() for match in _TERM_OF_VERSION_1.finditer(self._text)]
        start = max((end for _, end in ends if end <= position), default=0)
        stop = min((begin for begin, _ in ends if begin >= position), default=len(self._text))
        label = " ".join(self._text[start:stop].split())
        if not _SPECIAL_IN_LABEL.search(label) or len(label) > 60:
            return ""
        quoted = quote_label(label)
        return f" Write a label that contains one of ( ) | < > ~ : in quotes: {quoted}."


def _join_label_words(tokens: Iterator[QueryToken]) -> Iterator[QueryToken]:
    """Yield the tokens, with adjacent words joined to one label."""
    words: list[QueryToken] = []
    for token in tokens:
        if token.kind == "word":
            words.append(token)
            continue
        if words:
            yield _joined_words(words)
            words = []
        yield token
    if words:
        yield _joined_words(words)


def _joined_words(words: Sequence[QueryToken]) -> QueryToken:
    return QueryToken("word", " ".join(word.text for word in words), words[0].start)


def _number_in(items: dict[_Item, int], item: _Item) -> int:
    """Return the number of an item in ``items``; add the item if it is missing."""
    return items.setdefault(item, len(items))
