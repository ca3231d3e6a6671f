"""Exact search for the rows of a label table that match a formula with the highest probability.

A row is an image of the index, and its score is the log probability of the formula. The first rows
of each label's sorted list determine a *floor*: a score that at least ``k`` rows reach. The floor
has necessary conditions for the log-odds of single labels: the probability of a conjunction is at
most that of each term, and one term of a disjunction has a sufficient share of its probability. If
few rows of the sorted lists satisfy these conditions, only these rows are scored. Otherwise all
rows are scanned in blocks, and only rows that satisfy the conditions are scored. The floor
increases when better rows are found.

Axes: ``n`` rows, ``c`` labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import expm1, log
from typing import Literal

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.formula import (
    Conjunction,
    Disjunction,
    FilterLiteral,
    Formula,
    LabelLiteral,
    columns_of_formula,
    has_repeated_label,
    independent_factors,
    literals_of_formula,
    polarities_of_formula,
)
from surelabel.retrieval.formula_probability import (
    LogProbability,
    formula_log_probability,
    log_complement,
)
from surelabel.retrieval.label_table import IndexLabelTable, RowMask, RowNumbers

HEAD_ROWS = 1000  # rows from the top of each list, or 4 k if more, that make the initial floor
HEAD_LISTS = 16  # lists that make the initial floor
BLOCK_ROWS = 1 << 18  # rows per block, whose mask fits into the second-level cache
SPARSE_SHARE = 1 / 32  # of the rows: below that, scoring them one by one is faster than the scan


@dataclass(frozen=True)
class RankedRows:
    """Rows of a search result, and their scores, as arrays of equal length.

    Attributes:
        rows: Row numbers.
        scores: Log probability of the formula in nats, at most 0.
        ties: Sum of the raw scores of the labels, negated for unwanted labels and without labels of
            both signs, which sorts rows of equal ``scores``.
    """

    rows: RowNumbers
    scores: LogProbability
    ties: npt.NDArray[np.float64]

    def select_best(self, k: int) -> "RankedRows":
        """Return the best ``k`` rows, sorted by score, then by raw score, then by row number."""
        order = np.lexsort((self.rows, -self.ties, -self.scores))[:k]
        return RankedRows(self.rows[order], self.scores[order], self.ties[order])


@dataclass(frozen=True)
class FormulaSearchPlan:
    """How the rows of a search are found.

    Attributes:
        method: ``sorted lists`` of single labels, ``scan`` of all rows, ``allowed rows`` if they
            are few, or ``first rows`` if no label is in the formula.
        n_allowed: Number of rows that can be in the result.
        n_read: Number of rows whose log-odds are read, at most; a row of several lists counts for
            each.
        floor: Log probability that the best k rows reach, before other rows are read.
    """

    method: Literal["sorted lists", "scan", "allowed rows", "first rows"]
    n_allowed: int
    n_read: int
    floor: float


def merge_ranked_rows(parts: Sequence[RankedRows], starts: Sequence[int]) -> RankedRows:
    """Concatenate the results of several tables, and add the start of each to its row numbers."""
    empty = np.empty(0)
    rows = [part.rows + start for part, start in zip(parts, starts, strict=False)]
    return RankedRows(
        np.concatenate([empty.astype(np.int64), *rows]),
        np.concatenate([empty, *(part.scores for part in parts)]),
        np.concatenate([empty, *(part.ties for part in parts)]),
    )


def search_formula(
    table: IndexLabelTable, formula: Formula, k: int, is_allowed: RowMask | None = None
) -> RankedRows:
    """Find the ``k`` rows with the highest probability of a formula, by an exact search.

    Args:
        table: Log-odds of all rows.
        formula: Formula of labels, without filters.
        k: Number of rows, >= 1. If the table has fewer rows, all rows are returned.
        is_allowed: True for rows of the result, ``(n,)``. If None, rows that were not removed are
            allowed.

    Returns:
        The ``k`` rows, sorted by score, then by raw score, then by row number.

    Source:
        The score threshold from sorted lists follows Fagin, Lotem and Naor, Optimal Aggregation
        Algorithms for Middleware, JCSS 66 (2003) 614-656; conditions of formulas and the scan in
        blocks are ours.
    """
    is_allowed = table.is_active if is_allowed is None else is_allowed
    return _FormulaSearch(table, formula, k, is_allowed).best_rows()


def plan_formula_search(
    table: IndexLabelTable, formula: Formula, k: int, is_allowed: RowMask | None = None
) -> FormulaSearchPlan:
    """Return how `search_formula` finds the best rows."""
    is_allowed = table.is_active if is_allowed is None else is_allowed
    return _FormulaSearch(table, formula, k, is_allowed).plan()


def score_rows(
    table: IndexLabelTable, formula: Formula, rows: RowNumbers | slice
) -> LogProbability:
    """Return the log probability of a formula for some rows of a label table, ``(n,)``.

    Args:
        table: Log-odds of all rows.
        formula: Formula of labels, without filters.
        rows: Row numbers.
    """
    if isinstance(rows, slice) and has_repeated_label(formula):
        rows = np.arange(table.n_rows)[rows]
    scores = formula_log_probability(formula, table.logits, rows)
    n_rows = len(range(table.n_rows)[rows]) if isinstance(rows, slice) else len(rows)
    return np.broadcast_to(scores, (n_rows,))


def lowest_logit_at_floor(floor: float) -> float:
    """Return the log-odds below which a label cannot reach ``floor``, with a rounding margin.

    For a label with probability p and log-odds z, log p >= floor is equivalent to
    z >= floor - log(1 - exp(floor)).
    """
    if floor >= 0 or floor == -np.inf:
        return -np.inf
    logit = floor - log(-expm1(floor))
    return logit - 1e-5 * (1 + abs(logit))


def floor_of_alternatives(formula: Disjunction, floor: float) -> float:
    """Return a log probability that a term of a disjunction reaches if the disjunction does.

    Of m terms without common labels, one reaches 1 - (1 - P)^(1/m) if the disjunction reaches P. Of
    other terms, one reaches P / m.
    """
    n_terms = len(formula.terms)
    if floor == -np.inf or n_terms < 2:
        return floor
    if has_repeated_label(formula):
        return floor - log(n_terms)
    alternative = float(log_complement(log_complement(min(floor, 0.0)) / n_terms))
    return alternative if alternative > -np.inf else floor - log(n_terms)


@dataclass(frozen=True)
class _FormulaSearch:
    """Search for the best ``k`` rows of one formula in one table."""

    table: IndexLabelTable
    formula: Formula
    k: int
    is_allowed: RowMask | None

    def best_rows(self) -> RankedRows:
        if not columns_of_formula(self.formula):
            return self._rows_of_constant()
        rows, scores = self._candidates()
        ties = np.zeros(len(rows))
        for column, sign in polarities_of_formula(self.formula).items():
            if sign:
                ties = ties + sign * self.table.tie_values(column, rows).astype(np.float64)
        return RankedRows(rows, scores, ties).select_best(self.k)

    def _rows_of_constant(self) -> RankedRows:
        """Return the first allowed rows, which all have the same score."""
        rows = self._allowed(np.arange(self.table.n_rows))[: self.k]
        scores = np.array(score_rows(self.table, self.formula, rows))
        return RankedRows(rows, scores, np.zeros(len(rows)))

    def plan(self) -> FormulaSearchPlan:
        """Return how the candidate rows are found."""
        n_rows = self.table.n_rows
        n_allowed = n_rows if self.is_allowed is None else int(np.count_nonzero(self.is_allowed))
        if not columns_of_formula(self.formula):
            return FormulaSearchPlan("first rows", n_allowed, min(self.k, n_allowed), -np.inf)
        limit = SPARSE_SHARE * n_rows
        if n_allowed <= limit:
            return FormulaSearchPlan("allowed rows", n_allowed, n_allowed, -np.inf)
        floor = self._initial_floor()
        count = self._count_listed(self.formula, floor)
        if count is None or count > limit:
            return FormulaSearchPlan("scan", n_allowed, n_rows, floor)
        return FormulaSearchPlan("sorted lists", n_allowed, count, floor)

    def _candidates(self) -> tuple[RowNumbers, LogProbability]:
        """Return candidate rows and their scores, including all rows that reach the final floor."""
        plan = self.plan()
        if plan.method == "scan":
            return self._scan(plan.floor)
        if plan.method == "allowed rows":
            return self._rows_at_floor(np.arange(self.table.n_rows), plan.floor)
        return self._rows_at_floor(self._listed_rows(self.formula, plan.floor), plan.floor)

    def _initial_floor(self) -> float:
        """Return a score that at least ``k`` of the first rows of the sorted lists reach.

        Most labels are negative in most images, so unwanted labels exclude few rows. Lists of
        unwanted labels are used only if the formula has no wanted label.
        """
        literals = list(dict.fromkeys(literals_of_formula(self.formula)))
        literals = [literal for literal in literals if literal.sign > 0] or literals
        n_head = max(4 * self.k, HEAD_ROWS)
        heads = [self.table.best_rows(*literal, n_head) for literal in literals[:HEAD_LISTS]]
        rows = self._allowed(np.unique(np.concatenate(heads)))
        return self._kth_highest(score_rows(self.table, self.formula, rows))

    def _count_listed(self, formula: Formula, floor: float) -> int | None:
        """Return the number of rows of sorted lists that include all rows that reach a floor.

        Returns:
            Number of rows, or None if the lists do not include all rows.
        """
        if isinstance(formula, LabelLiteral):
            return self.table.count_reaching(*formula, lowest_logit_at_floor(floor))
        assert not isinstance(formula, FilterLiteral)
        if isinstance(formula, Disjunction):
            floor = floor_of_alternatives(formula, floor)
        counts = [self._count_listed(term, floor) for term in formula.terms]
        known = [count for count in counts if count is not None]
        if isinstance(formula, Conjunction):
            return min(known, default=None)
        return sum(known) if len(known) == len(counts) else None

    def _listed_rows(self, formula: Formula, floor: float) -> RowNumbers:
        """Return rows of sorted lists that include all rows that reach a floor."""
        if isinstance(formula, LabelLiteral):
            count = self._count_listed(formula, floor)
            assert count is not None
            return self.table.best_rows(*formula, count)
        assert not isinstance(formula, FilterLiteral)
        if isinstance(formula, Disjunction):
            floor = floor_of_alternatives(formula, floor)
            parts = [self._listed_rows(term, floor) for term in formula.terms]
            return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
        counts = {term: self._count_listed(term, floor) for term in formula.terms}
        known = {term: count for term, count in counts.items() if count is not None}
        return self._listed_rows(min(known, key=lambda term: known[term]), floor)

    def _scan(self, floor: float) -> tuple[RowNumbers, LogProbability]:
        """Scan all rows in blocks and score only rows that satisfy the conditions of the floor."""
        rows, scores = np.empty(0, np.int64), np.empty(0)
        for start in range(0, self.table.n_rows, BLOCK_ROWS):
            block = slice(start, min(start + BLOCK_ROWS, self.table.n_rows))
            is_candidate = np.ones(block.stop - start, bool)
            self._clear_below_floor(self.formula, floor, block, is_candidate)
            candidates = start + np.flatnonzero(is_candidate)
            if len(candidates):
                new_rows, new_scores = self._rows_at_floor(candidates, floor)
                rows, scores = np.append(rows, new_rows), np.append(scores, new_scores)
                floor = max(floor, self._kth_highest(scores))
                rows, scores = rows[scores >= floor], scores[scores >= floor]
        return rows, scores

    def _clear_below_floor(self, formula: Formula, floor: float, rows: slice, out: RowMask) -> None:
        """Clear the mask of rows that violate a necessary condition of a floor."""
        if isinstance(formula, LabelLiteral):
            self.table.reaches(*formula, lowest_logit_at_floor(floor), rows, out)
            return
        assert not isinstance(formula, FilterLiteral)
        if isinstance(formula, Conjunction):
            for term in formula.terms:
                self._clear_below_floor(term, floor, rows, out)
            return
        floor = floor_of_alternatives(formula, floor)
        reaches_floor = np.zeros(len(out), bool)
        for term in formula.terms:
            is_alternative = np.ones(len(out), bool)
            self._clear_below_floor(term, floor, rows, is_alternative)
            reaches_floor |= is_alternative
        out &= reaches_floor

    def _rows_at_floor(self, rows: RowNumbers, floor: float) -> tuple[RowNumbers, LogProbability]:
        """Return the allowed rows that reach the floor, with their scores."""
        rows = self._allowed(rows)
        scores = np.zeros(len(rows))
        for factor in self._factors:  # each is at most 0, so a sum below the floor stays there
            scores = scores + score_rows(self.table, factor, rows)
            rows, scores = rows[scores >= floor], scores[scores >= floor]
        return rows, scores

    @cached_property
    def _factors(self) -> list[Formula]:
        return independent_factors(self.formula)

    def _allowed(self, rows: RowNumbers) -> RowNumbers:
        return rows if self.is_allowed is None else rows[self.is_allowed[rows]]

    def _kth_highest(self, scores: LogProbability) -> float:
        """Return the k-th highest score, or minus infinity if there are fewer than ``k`` scores."""
        k = self.k
        return float(np.partition(scores, -k)[-k]) if len(scores) >= k else -np.inf
