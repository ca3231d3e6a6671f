"""Collect the rows that can be in the result of a search, and a lower bound of their scores."""

import numpy as np

from surelabel.retrieval.formula import Formula, has_repeated_label, independent_factors
from surelabel.retrieval.formula_probability import LogProbability
from surelabel.retrieval.formula_scores import bound_scores, score_rows
from surelabel.retrieval.label_table import IndexLabelTable, RowNumbers

_ROUNDING_MARGIN = 1e-9  # of bounds and scores in float64, relative to 1 + |score|


class CandidateRows:
    """Rows that can be among the best ``k``, and their *floor*.

    The floor is a score that at least ``k`` rows reach. It increases when better rows are added.
    Rows are added with bounds of their scores, and only the rows that remain at the end are scored.
    A factor of the formula in which a label is repeated has no bounds. If the formula has such a
    factor, rows are scored when they are added.

    Attributes:
        floor: Score that at least ``k`` rows reach, or minus infinity if no such score is known.
    """

    def __init__(
        self, table: IndexLabelTable, formula: Formula, k: int, floor: float = -np.inf
    ) -> None:
        self.floor = floor
        self._table = table
        self._formula = formula
        self._k = k
        factors = independent_factors(formula)
        self._bounded_factors = [factor for factor in factors if not has_repeated_label(factor)]
        self._is_bounded = len(self._bounded_factors) == len(factors)
        self._rows: RowNumbers = np.empty(0, np.int64)
        self._lower: LogProbability = np.empty(0)
        self._upper: LogProbability = np.empty(0)

    def select_reaching(self, rows: RowNumbers) -> tuple[RowNumbers, LogProbability]:
        """Return the rows whose upper bound of the score reaches the floor, with these bounds.

        Bounds up to a rounding margin below the floor are accepted.

        Args:
            rows: Row numbers, which can be repeated. Their order does not change.
        """
        bounds = np.zeros(len(rows))
        for factor in self._bounded_factors:  # each is at most 0, as are the others
            bounds = bounds + bound_scores(self._table, factor, rows)
            reaches_floor = bounds >= self._lowest_bound
            rows, bounds = rows[reaches_floor], bounds[reaches_floor]
        return rows, bounds

    def add(self, rows: RowNumbers) -> None:
        """Add the rows that can reach the floor, raise the floor, and drop rows below the floor.

        Args:
            rows: Distinct row numbers that were not added before.
        """
        rows, upper = self.select_reaching(rows)
        if self._is_bounded:
            lower = np.zeros(len(rows))
            for factor in self._bounded_factors:
                lower += bound_scores(self._table, factor, rows, is_upper=False)
        else:
            upper = lower = score_rows(self._table, self._formula, rows)
        self._rows = np.append(self._rows, rows)
        self._lower, self._upper = np.append(self._lower, lower), np.append(self._upper, upper)
        if len(self._rows) >= self._k:
            k_th_highest = np.partition(self._lower, -self._k)[-self._k]
            self.floor = max(self.floor, float(k_th_highest))
            reaches_floor = self._upper >= self._lowest_bound
            self._rows = self._rows[reaches_floor]
            self._lower, self._upper = self._lower[reaches_floor], self._upper[reaches_floor]

    def scored_rows(self) -> tuple[RowNumbers, LogProbability]:
        """Return the numbers of all added rows that can be among the best ``k``, and their scores.

        The rows are in the order in which they were added.
        """
        return self._rows, score_rows(self._table, self._formula, self._rows)

    @property
    def _lowest_bound(self) -> float:
        """Return the floor minus a margin for rounding errors."""
        return self.floor - _ROUNDING_MARGIN * (1 + abs(self.floor))
