"""Compute the probability that an image matches a formula of labels.

The labels are treated as independent given the image. If a label occurs several times, the formula
is expanded into the case that the label is positive and the case that the label is negative
(Shannon expansion). The probability of ``a & !a`` is therefore 0, and that of ``a | !a`` is 1.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.formula import (
    Conjunction,
    Disjunction,
    FilterLiteral,
    Formula,
    LabelLiteral,
    columns_of_formula,
    independent_factors,
    negate_formula,
    restrict_labels,
)

LogProbability = npt.NDArray[np.float64]
ReadLogits = Callable[[int, npt.NDArray[np.int64] | slice], npt.NDArray[np.floating]]

MAX_EXPANDED_LABELS = 12  # limit for a formula in which a label is repeated
MAX_EXPANDED_LITERALS = 100  # limit for a formula in which a label is repeated
_EXPANDED_ROWS = 1 << 12  # rows whose intermediate values are in memory at once
_FEW_STEPS = 32  # up to this number of steps, all rows are in memory at once


def log_sigmoid(logits: npt.ArrayLike) -> LogProbability:
    """Compute log probabilities from log-odds in float64, also accurate far from zero.

        log p = min(z, 0) - log(1 + exp(-|z|))

    Here z is the log-odds and p is the probability.

    Example:
        >>> log_sigmoid([-40.0, 0.0, 40.0])
        array([-4.00000000e+01, -6.93147181e-01, -4.24835426e-18])
    """
    z = np.asarray(logits, dtype=np.float64)
    log_probabilities: LogProbability = np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z)))
    return log_probabilities


def log_complement(log_probabilities: npt.ArrayLike) -> LogProbability:
    """Compute log(1 - p) from log p, accurate for p near 0 and near 1.

    For p = 1, the value is minus infinity.

    Example:
        >>> log_complement(np.log([1e-300, 0.5]))
        array([-1.00000000e-300, -6.93147181e-001])
    """
    values = np.asarray(log_probabilities, dtype=np.float64)
    with np.errstate(divide="ignore"):  # log(1 - 1) is minus infinity
        complement: LogProbability = np.where(
            values > -np.log(2), np.log(-np.expm1(values)), np.log1p(-np.exp(values))
        )
    return complement


def formula_log_probability(
    formula: Formula, read_logits: ReadLogits, rows: npt.NDArray[np.int64] | slice
) -> LogProbability:
    """Return the log probability that each image matches a formula.

        log P(f1 & f2)  = log P(f1) + log P(f2)              without common labels
        log P(f1 | f2)  = log(1 - P(!f1) · P(!f2))           without common labels
        P(f)            = p · P(f with a) + (1 - p) · P(f with !a)

    Here p is the probability of a label a that is repeated in f.

    Args:
        formula: Formula without filters. If a label is repeated, the time can double with each
            label; ``parse`` therefore accepts at most 12 labels.
        read_logits: Function that returns the log-odds of some rows of a column.
        rows: Row numbers of the images, or all rows as ``slice(None)``.

    Returns:
        Log probabilities in nats, at most 0, float64, ``(n,)``. For a formula without labels, the
        shape is ``()``.

    Raises:
        TypeError: If the formula contains a filter.

    Source:
        Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024,
        eq. 23, for conjunctions; other formulas and the expansion are ours.

    Differs:
        The log probability is computed from log-odds, because float32 probabilities above a
        log-odds of 17 are rounded to 1.

    Example:
        >>> logits = np.array([[0.0], [0.0]])  # two labels with probability 0.5
        >>> a, b = LabelLiteral(0, 1), LabelLiteral(1, 1)
        >>> read = lambda column, rows: logits[column, rows]
        >>> either = formula_log_probability(Disjunction((a, b)), read, slice(None))
        >>> np.exp(either), np.exp(formula_log_probability(Conjunction((a, b)), read, slice(None)))
        (array([0.75]), array([0.25]))
    """
    steps = _compile_formula(formula)
    if isinstance(rows, slice) or len(rows) <= _EXPANDED_ROWS or len(steps) <= _FEW_STEPS:
        return _evaluate_steps(steps, read_logits, rows)
    blocks = [rows[i : i + _EXPANDED_ROWS] for i in range(0, len(rows), _EXPANDED_ROWS)]
    return np.concatenate([_evaluate_steps(steps, read_logits, block) for block in blocks])


def read_logits_of_columns(logits: npt.NDArray[np.floating]) -> ReadLogits:
    """Return a function that reads the log-odds of some rows of a column.

    Args:
        logits: Log-odds, ``(c, n)``.
    """
    return lambda column, rows: logits[column, rows]


class _Literal(NamedTuple):
    """Step that computes the log probability of a literal."""

    column: int
    sign: int


class _Product(NamedTuple):
    """Step that computes the log probability that the events of several other steps occur."""

    steps: tuple[int, ...]


class _Complement(NamedTuple):
    """Step that computes the log probability that the event of another step does not occur."""

    step: int


class _Cases(NamedTuple):
    """Step that computes the log probability of the union of two disjoint events."""

    first: int
    second: int


_Step = _Literal | _Product | _Complement | _Cases


@lru_cache(maxsize=64)
def _compile_formula(formula: Formula) -> tuple[_Step, ...]:
    """Return the steps that compute a formula; the last step computes its log probability."""
    compiler = _FormulaCompiler()
    compiler.add_formula(formula)
    return tuple(compiler.steps)


class _FormulaCompiler:
    """Expand a formula into steps; equal formulas share one step."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self._numbers: dict[Formula, int] = {}

    def add_formula(self, formula: Formula) -> int:
        """Add the steps of a formula, and return the number of the last step."""
        if formula not in self._numbers:
            self._numbers[formula] = self._add(self._step_of(formula))
        return self._numbers[formula]

    def _step_of(self, formula: Formula) -> _Step:
        if isinstance(formula, LabelLiteral):
            return _Literal(*formula)
        if isinstance(formula, FilterLiteral):
            raise TypeError("a filter has no probability; call restrict_filters first")
        if isinstance(formula, Disjunction):
            return _Complement(self.add_formula(negate_formula(formula)))
        factors = independent_factors(formula)
        if factors == [formula]:
            return self._cases_of(formula)
        return _Product(tuple(map(self.add_formula, factors)))

    def _cases_of(self, formula: Conjunction) -> _Step:
        """Return the step of a conjunction whose terms have common labels."""
        counts = columns_of_formula(formula)
        column = max(counts, key=lambda column: counts[column])
        cases = []
        for is_positive in (True, False):
            literal = self.add_formula(LabelLiteral(column, 1 if is_positive else -1))
            rest = self.add_formula(restrict_labels(formula, {column: is_positive}))
            cases.append(self._add(_Product((literal, rest))))
        return _Cases(*cases)

    def _add(self, step: _Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


def _evaluate_steps(
    steps: Sequence[_Step], read_logits: ReadLogits, rows: npt.NDArray[np.int64] | slice
) -> LogProbability:
    """Return the result of the last step for the given rows."""
    values: list[LogProbability] = []
    for step in steps:
        match step:
            case _Literal(column, sign):
                value = log_sigmoid(sign * read_logits(column, rows))
            case _Complement(number):
                value = log_complement(values[number])
            case _Cases(first, second):
                either = np.logaddexp(values[first], values[second])
                value = np.minimum(either, 0.0)  # rounding can give a probability above 1
            case _Product(numbers):
                # np.sum would add the terms of a single row in another order.
                value = np.asarray(sum(values[number] for number in numbers), np.float64)
        values.append(value)
    return values[-1]
