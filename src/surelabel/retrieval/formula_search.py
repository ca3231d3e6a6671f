"""Search a label table exactly for the rows that match a formula with the highest probability.

A row is an image of the index, and its score is the log probability of the formula. The first rows
of each label's sorted list determine a *floor*: a score that at least ``k`` rows reach. The floor
implies necessary conditions for the log-odds of single labels. The probability of a conjunction is
at most that of each term, and a term of a disjunction has at least a share of its probability. If
few rows of the sorted lists satisfy these conditions, only these rows are scored. Otherwise all
rows are scanned in blocks, and only rows that satisfy the conditions are scored. The floor
increases when better rows are found. The first blocks are short, so that the floor is high when
most rows are scanned.

Axes: ``n`` rows, ``c`` labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log
from typing import Literal

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.candidate_rows import CandidateRows
from surelabel.retrieval.formula import (
    Conjunction,
    Disjunction,
    FilterLiteral,
    Formula,
    LabelLiteral,
    columns_of_formula,
    has_repeated_label,
    literals_of_formula,
    polarities_of_formula,
)
from surelabel.retrieval.formula_probability import LogProbability, log_complement
from surelabel.retrieval.formula_scores import score_rows
from surelabel.retrieval.label_table import IndexLabelTable, RowMask, RowNumbers

HEAD_ROWS = 256  # rows from the top of each list, or 2 k if more, that make the initial floor
HEAD_LISTS = 16  # lists that give the initial floor
LIST_ROWS = 4096  # rows from the top of each list that can include all results of a disjunction
MIN_COMPLEMENT = -700.0  # log(1 - P) of the floor of a disjunction; float64 rounds smaller 1 - P
FIRST_BLOCK_ROWS = 1 << 15  # rows of the first block of a scan; a block is 4 times as long as the
BLOCK_ROWS = 1 << 19  # block before, up to this length, whose mask fits into second-level cache
SAMPLED_ROWS = 1 << 12  # first rows of a block, from which the share of rows of a term is estimated
MAX_SHARE = 7 / 8  # of the rows: a term that more rows satisfy is not a condition of a scan
SPARSE_SHARE = 1 / 64  # of the rows: below that, reading them one by one is faster than the scan


_ListedParts = list[tuple[LabelLiteral, int]]  # literals, and numbers of rows of their lists


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
        """Return the best ``k`` rows, by decreasing score, then decreasing ``ties``, then row."""
        order = np.lexsort((self.rows, -self.ties, -self.scores))[:k]
        return RankedRows(self.rows[order], self.scores[order], self.ties[order])


@dataclass(frozen=True)
class FormulaSearchPlan:
    """Plan of a search: which rows are read, and how they are found.

    Attributes:
        method: ``sorted lists`` of single labels, ``scan`` of all rows, ``allowed rows`` if few
            rows are allowed, or ``first rows`` if the formula contains no label.
        n_allowed: Number of rows that can be in the result.
        n_read: Maximum number of rows whose log-odds are read, or number of the first rows. A row
            of several lists is counted for each list.
        floor: Log probability that the best k rows reach, according to the first rows of the sorted
            lists. If it was not computed, or fewer than k rows were found, it is minus infinity.
    """

    method: Literal["sorted lists", "scan", "allowed rows", "first rows"]
    n_allowed: int
    n_read: int
    floor: float


def merge_ranked_rows(parts: Sequence[RankedRows], starts: Sequence[int]) -> RankedRows:
    """Concatenate the results of several tables, and add the start of each table to its rows.

    Args:
        parts: Results of the tables, which are not sorted again.
        starts: Row number of the first row of each table.
    """
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
        k: Number of rows, >= 1. If fewer rows are allowed, all allowed rows are returned.
        is_allowed: True for rows that can be in the result, ``(n,)``. If None, rows that were not
            removed are allowed.

    Returns:
        The ``k`` rows, by decreasing score, then decreasing raw score, then row number. If the
        formula has no label, the first allowed rows.

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
    """Return the plan of a search by `search_formula` with the given arguments."""
    is_allowed = table.is_active if is_allowed is None else is_allowed
    return _FormulaSearch(table, formula, k, is_allowed).plan()


def lowest_logit_at_floor(floor: float) -> float:
    """Return the log-odds below which a label cannot reach ``floor``, with a rounding margin.

    For a label with probability p and log-odds z, log p >= floor is equivalent to
    z >= floor - log(1 - exp(floor)). If ``floor`` is minus infinity or at least 0, the value is
    minus infinity, so that no row is excluded.
    """
    if floor >= 0 or floor == -np.inf:
        return -np.inf
    logit = floor - log(-expm1(floor))
    return logit - 1e-5 * (1 + abs(logit))


def term_floor_of_disjunction(formula: Disjunction, floor: float) -> float:
    """Return a log probability that at least one term reaches if the disjunction reaches ``floor``.

    If a disjunction of m terms reaches the probability P, at least one term reaches P / m. If the
    terms have no common labels, at least one term reaches 1 - (1 - P)^(1/m).
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
        rows, scores = self._candidates().scored_rows()
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
        """Return the plan of the search for candidate rows."""
        n_rows = self.table.n_rows
        n_allowed = n_rows if self.is_allowed is None else int(np.count_nonzero(self.is_allowed))
        if not columns_of_formula(self.formula):
            return FormulaSearchPlan("first rows", n_allowed, min(self.k, n_allowed), -np.inf)
        limit = SPARSE_SHARE * n_rows
        if n_allowed <= limit:
            return FormulaSearchPlan("allowed rows", n_allowed, n_allowed, -np.inf)
        floor = self._initial_floor()
        parts = self._listed_parts(self.formula, floor)
        if parts is None or _count_rows(parts) > limit:
            return FormulaSearchPlan("scan", n_allowed, n_rows, floor)
        return FormulaSearchPlan("sorted lists", n_allowed, _count_rows(parts), floor)

    def _candidates(self) -> CandidateRows:
        """Return candidate rows and their scores, including all rows that reach the final floor."""
        plan = self.plan()
        candidates = CandidateRows(self.table, self.formula, self.k, plan.floor)
        if plan.method == "scan":
            self._scan(candidates)
        elif plan.method == "allowed rows":
            is_allowed = self.is_allowed
            n_rows = self.table.n_rows
            candidates.add(np.arange(n_rows) if is_allowed is None else np.flatnonzero(is_allowed))
        else:
            parts = self._listed_parts(self.formula, plan.floor) or []
            lists = [self.table.best_rows(*literal, count) for literal, count in parts]
            rows = self._allowed(np.concatenate([np.empty(0, np.int64), *lists]))
            candidates.add(_sort_distinct(candidates.select_reaching(rows)[0]))
        return candidates

    def _initial_floor(self) -> float:
        """Return a score that at least ``k`` of the first rows of the sorted lists reach.

        If fewer than ``k`` of these rows are allowed, the score is minus infinity. Most labels are
        negative in most images, so unwanted labels exclude few rows. Lists of unwanted labels are
        used only if the formula has no wanted label.
        """
        literals = list(dict.fromkeys(literals_of_formula(self.formula)))
        literals = [literal for literal in literals if literal.sign > 0] or literals
        n_head = max(2 * self.k, HEAD_ROWS)
        heads = [self.table.best_rows(*literal, n_head) for literal in literals[:HEAD_LISTS]]
        candidates = CandidateRows(self.table, self.formula, self.k)
        candidates.add(_sort_distinct(self._allowed(np.concatenate(heads))))
        return candidates.floor

    def _listed_parts(self, formula: Formula, floor: float) -> _ListedParts | None:
        """Return parts of sorted lists that include all rows that reach a floor.

        Returns:
            Literals, and numbers of rows from the top of their lists. If the lists do not include
            all rows, the value is None.
        """
        if isinstance(formula, LabelLiteral):
            count = self.table.count_reaching(*formula, lowest_logit_at_floor(floor))
            return None if count is None else [(formula, count)]
        assert not isinstance(formula, FilterLiteral)
        if isinstance(formula, Conjunction):
            options = [self._listed_parts(term, floor) for term in formula.terms]
        else:
            shared_floor = term_floor_of_disjunction(formula, floor)
            alternatives = [self._listed_parts(term, shared_floor) for term in formula.terms]
            options = [_concatenate_parts(alternatives), self._equal_parts(formula, floor)]
        return min((parts for parts in options if parts is not None), key=_count_rows, default=None)

    def _equal_parts(self, formula: Disjunction, floor: float) -> _ListedParts | None:
        """Return equally long parts of the lists of literals that include all rows above a floor.

        A row that is in no part has at most the log-odds of the last row of each part. Therefore
        its score is at most that of a row with all these log-odds. If the terms are not distinct
        labels, or the lists are too short, the value is None.

        Source:
            Fagin, Lotem and Naor, section 4 (threshold algorithm), with all rows of a list at once.
        """
        literals = [term for term in formula.terms if isinstance(term, LabelLiteral)]
        if len(literals) < len(formula.terms) or has_repeated_label(formula):
            return None
        limit = float(log_complement(min(floor, 0.0)))
        if not MIN_COMPLEMENT < limit < 0:
            return None
        lists = [self.table.best_rows(*literal, LIST_ROWS) for literal in literals]
        n_listed = min(map(len, lists), default=0)
        complements = np.zeros(n_listed)  # lower bounds of the log probability that none is true
        for (column, sign), rows in zip(literals, lists, strict=True):
            complements += self.table.score_bounds(column, -sign, rows[:n_listed], is_upper=False)
        count = int(np.searchsorted(complements, limit + 1e-9 * (1 + abs(limit)), side="right")) + 1
        return [(literal, count) for literal in literals] if count <= n_listed else None

    def _scan(self, candidates: CandidateRows) -> None:
        """Scan all rows in blocks and add only rows that satisfy the conditions of the floor."""
        start, length = 0, min(FIRST_BLOCK_ROWS, BLOCK_ROWS)
        while start < self.table.n_rows:
            block = slice(start, min(start + length, self.table.n_rows))
            is_candidate = np.ones(block.stop - start, bool)
            if self.is_allowed is not None:
                is_candidate &= self.is_allowed[block]
            self._clear_below_floor(self.formula, candidates.floor, block, is_candidate)
            candidates.add(start + np.flatnonzero(is_candidate))
            start, length = block.stop, min(4 * length, BLOCK_ROWS)

    def _clear_below_floor(self, formula: Formula, floor: float, rows: slice, out: RowMask) -> None:
        """Clear the mask of rows that violate a necessary condition of reaching a floor."""
        if isinstance(formula, LabelLiteral):
            self.table.clear_below_threshold(*formula, lowest_logit_at_floor(floor), rows, out)
            return
        assert not isinstance(formula, FilterLiteral)
        if isinstance(formula, Conjunction):
            for term in self._selective_terms(formula, floor, rows):
                self._clear_below_floor(term, floor, rows, out)
            return
        floor = term_floor_of_disjunction(formula, floor)
        reaches_floor = np.zeros(len(out), bool)
        for term in formula.terms:
            is_alternative = np.ones(len(out), bool)
            self._clear_below_floor(term, floor, rows, is_alternative)
            reaches_floor |= is_alternative
        out &= reaches_floor

    def _selective_terms(self, formula: Conjunction, floor: float, rows: slice) -> list[Formula]:
        """Return the terms whose conditions exclude most rows of a block, the most selective first.

        Further terms are left out if they exclude few rows, or if few rows remain, because reading
        bounds of these rows is then faster. Without a floor, no term is returned.
        """
        if floor == -np.inf:
            return []
        if rows.stop - rows.start <= SAMPLED_ROWS:  # no sample of a sample, in nested formulas
            return list(formula.terms)
        sample = slice(rows.start, min(rows.start + SAMPLED_ROWS, rows.stop))
        shares = []
        for term in formula.terms:
            satisfies_term = np.ones(sample.stop - sample.start, bool)
            self._clear_below_floor(term, floor, sample, satisfies_term)
            shares.append(np.count_nonzero(satisfies_term) / len(satisfies_term))
        terms, remaining_share = list[Formula](), 1.0
        for number in np.argsort(shares, kind="stable").tolist():
            if shares[number] > MAX_SHARE or remaining_share <= SPARSE_SHARE:
                break
            terms.append(formula.terms[number])
            remaining_share *= shares[number]
        return terms

    def _allowed(self, rows: RowNumbers) -> RowNumbers:
        return rows if self.is_allowed is None else rows[self.is_allowed[rows]]


def _count_rows(parts: _ListedParts) -> int:
    """Return the number of rows of parts of lists; a row of several parts counts for each."""
    return sum(count for _, count in parts)


def _concatenate_parts(alternatives: Sequence[_ListedParts | None]) -> _ListedParts | None:
    """Return the parts of all alternatives, or None if an alternative has none."""
    known = [parts for parts in alternatives if parts is not None]
    return [part for parts in known for part in parts] if len(known) == len(alternatives) else None


def _sort_distinct(rows: RowNumbers) -> RowNumbers:
    """Return distinct row numbers in order; ``np.unique`` takes 5 times as long."""
    rows = np.sort(rows)
    return rows[np.append(True, rows[1:] != rows[:-1])] if len(rows) else rows
