"""Define Boolean formulas of labels and filters, in negation normal form.

A formula is a literal, a conjunction (all terms are true) or a disjunction (at least one term is
true). Only literals are negated. The empty conjunction is true, and the empty disjunction is false.
A literal is a label, given by its column in an index, or a filter, given by its number. A filter is
true or false for an image. A label is positive with a probability.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt


class LabelLiteral(NamedTuple):
    """Label that must be positive or negative.

    Attributes:
        column: Column of the label.
        sign: 1 if the label must be positive, -1 if it must be negative.
    """

    column: int
    sign: int


@dataclass(frozen=True)
class FilterLiteral:
    """Filter that an image must satisfy or must not satisfy.

    Attributes:
        number: Number of the filter.
        sign: 1 if an image must satisfy the filter, -1 if an image must not satisfy the filter.
    """

    number: int
    sign: int = 1


@dataclass(frozen=True)
class Conjunction:
    """Formula that is true if all terms are true."""

    terms: tuple["Formula", ...] = ()


@dataclass(frozen=True)
class Disjunction:
    """Formula that is true if at least one term is true."""

    terms: tuple["Formula", ...] = ()


Formula: TypeAlias = LabelLiteral | FilterLiteral | Conjunction | Disjunction
TRUE, FALSE = Conjunction(), Disjunction()


def make_conjunction(terms: Sequence[Formula]) -> Formula:
    """Return the conjunction of formulas, and remove repeated terms, nesting and constants.

    The terms of a conjunction in ``terms`` become terms of the result. If a term is false, the
    result is ``FALSE``; if there is no term, the result is ``TRUE``.

    Example:
        >>> make_conjunction([LabelLiteral(0, 1), TRUE, Conjunction((LabelLiteral(0, 1),))])
        LabelLiteral(column=0, sign=1)
    """
    distinct: dict[Formula, None] = {}
    for term in terms:
        distinct |= dict.fromkeys(term.terms if isinstance(term, Conjunction) else (term,))
    if FALSE in distinct:
        return FALSE
    return next(iter(distinct)) if len(distinct) == 1 else Conjunction(tuple(distinct))


def make_disjunction(terms: Sequence[Formula]) -> Formula:
    """Return the disjunction of formulas, and remove repeated terms, nesting and constants.

    The terms of a disjunction in ``terms`` become terms of the result. If a term is true, the
    result is ``TRUE``; if there is no term, the result is ``FALSE``.

    Example:
        >>> make_disjunction([LabelLiteral(0, 1), TRUE]) == TRUE
        True
    """
    distinct: dict[Formula, None] = {}
    for term in terms:
        distinct |= dict.fromkeys(term.terms if isinstance(term, Disjunction) else (term,))
    if TRUE in distinct:
        return TRUE
    return next(iter(distinct)) if len(distinct) == 1 else Disjunction(tuple(distinct))


def negate_formula(formula: Formula) -> Formula:
    """Return the negation of a formula in negation normal form.

    Example:
        >>> negate_formula(Disjunction((LabelLiteral(0, 1), LabelLiteral(1, -1))))
        Conjunction(terms=(LabelLiteral(column=0, sign=-1), LabelLiteral(column=1, sign=1)))
    """
    if isinstance(formula, LabelLiteral):
        return LabelLiteral(formula.column, -formula.sign)
    if isinstance(formula, FilterLiteral):
        return FilterLiteral(formula.number, -formula.sign)
    terms = tuple(map(negate_formula, formula.terms))
    return Disjunction(terms) if isinstance(formula, Conjunction) else Conjunction(terms)


def restrict_labels(formula: Formula, values: Mapping[int, bool]) -> Formula:
    """Return a formula in which labels with a given truth value are replaced by this value.

    Args:
        formula: Formula.
        values: Whether a label is positive, by column; other labels stay in the formula.
    """
    if isinstance(formula, LabelLiteral):
        value = values.get(formula.column)
        return formula if value is None else TRUE if value == (formula.sign > 0) else FALSE
    if isinstance(formula, FilterLiteral):
        return formula
    terms = [restrict_labels(term, values) for term in formula.terms]
    make = make_conjunction if isinstance(formula, Conjunction) else make_disjunction
    return make(terms)


def restrict_filters(formula: Formula, values: Mapping[int, bool]) -> Formula:
    """Return a formula in which filters with a given truth value are replaced by this value.

    Args:
        formula: Formula.
        values: Whether a filter is true, by number; other filters stay in the formula.
    """
    if isinstance(formula, FilterLiteral):
        value = values.get(formula.number)
        return formula if value is None else TRUE if value == (formula.sign > 0) else FALSE
    if isinstance(formula, LabelLiteral):
        return formula
    terms = [restrict_filters(term, values) for term in formula.terms]
    make = make_conjunction if isinstance(formula, Conjunction) else make_disjunction
    return make(terms)


def literals_of_formula(formula: Formula) -> Iterator[LabelLiteral]:
    """Yield the label literals of a formula in order, with repetitions."""
    if isinstance(formula, LabelLiteral):
        yield formula
    elif not isinstance(formula, FilterLiteral):
        for term in formula.terms:
            yield from literals_of_formula(term)


def columns_of_formula(formula: Formula) -> Counter[int]:
    """Return the number of literals of each label, by column, in the order of first occurrence."""
    return Counter(literal.column for literal in literals_of_formula(formula))


def polarities_of_formula(formula: Formula) -> dict[int, int]:
    """Return the sign of each column of a formula: 1, -1, or 0 if it occurs with both signs."""
    signs: dict[int, set[int]] = {}
    for literal in literals_of_formula(formula):
        signs.setdefault(literal.column, set()).add(literal.sign)
    return {column: sum(values) for column, values in signs.items()}


def is_formula_true(formula: Formula, is_positive: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether a formula without filters is true for each image, ``(n,)``.

    Args:
        formula: Formula of labels.
        is_positive: Whether each label is positive, ``(c, n)``.
    """
    if isinstance(formula, LabelLiteral):
        line: npt.NDArray[np.bool_] = is_positive[formula.column]
        return line if formula.sign > 0 else ~line
    is_conjunction = isinstance(formula, Conjunction)
    result = np.full(is_positive.shape[1], is_conjunction)
    for term in () if isinstance(formula, FilterLiteral) else formula.terms:
        values = is_formula_true(term, is_positive)
        result = result & values if is_conjunction else result | values
    return result


def has_repeated_label(formula: Formula) -> bool:
    """Return whether a label occurs more than once in a formula."""
    return max(columns_of_formula(formula).values(), default=0) > 1


def independent_factors(formula: Formula) -> list[Formula]:
    """Split a formula into factors without common labels, whose conjunction is the formula.

    The factors are in the order of their first terms. A formula that is not a conjunction is its
    only factor, and ``TRUE`` has no factor.

    Example:
        >>> a, b, c = (LabelLiteral(column, 1) for column in range(3))
        >>> formula = Conjunction((c, Disjunction((a, b)), LabelLiteral(0, -1)))
        >>> factors = independent_factors(formula)
        >>> [len(columns_of_formula(factor)) for factor in factors]
        [1, 2]
    """
    if not isinstance(formula, Conjunction):
        return [formula]
    groups: list[tuple[list[Formula], set[int]]] = []
    owners: dict[int, int] = {}  # group number of each column
    for term in formula.terms:
        columns = set(columns_of_formula(term))
        numbers = sorted({owners[column] for column in columns & owners.keys()})
        number = numbers[0] if numbers else len(groups)
        if not numbers:
            groups.append(([], set()))
        for other in numbers[1:]:
            groups[number][0].extend(groups[other][0])
            columns |= groups[other][1]
            groups[other][0].clear()
        groups[number][0].append(term)
        groups[number][1].update(columns)
        owners |= dict.fromkeys(columns, number)
    return [make_conjunction(terms) for terms, _ in groups if terms]
