"""Compute log probabilities of a formula for the rows of a label table, and their bounds."""

import numpy as np

from surelabel.retrieval.formula import (
    Conjunction,
    FilterLiteral,
    Formula,
    LabelLiteral,
    has_repeated_label,
    negate_formula,
)
from surelabel.retrieval.formula_probability import (
    LogProbability,
    formula_log_probability,
    log_complement,
)
from surelabel.retrieval.label_table import IndexLabelTable, RowNumbers


def score_rows(
    table: IndexLabelTable, formula: Formula, rows: RowNumbers | slice
) -> LogProbability:
    """Return the log probability of a formula for some rows of a label table, ``(n,)``.

    Args:
        table: Log-odds of all rows.
        formula: Formula of labels, without filters.
        rows: Row numbers, or a slice of the rows.
    """
    if isinstance(rows, slice) and has_repeated_label(formula):
        rows = np.arange(table.n_rows)[rows]
    scores = formula_log_probability(formula, table.logits, rows)
    n_rows = len(range(table.n_rows)[rows]) if isinstance(rows, slice) else len(rows)
    return scores if scores.shape else np.broadcast_to(scores, (n_rows,))


def bound_scores(
    table: IndexLabelTable, formula: Formula, rows: RowNumbers, *, is_upper: bool = True
) -> LogProbability:
    """Return bounds of the log probability of a formula for some rows, ``(n,)``.

    The probability of a formula without repeated labels increases with that of each literal, so
    bounds of the literals give bounds of the formula.

    Args:
        table: Log-odds of all rows.
        formula: Formula of labels, without filters and without repeated labels.
        rows: Row numbers.
        is_upper: If True, upper bounds are returned; otherwise, lower bounds. The bounds hold apart
            from rounding in float64.
    """
    assert not isinstance(formula, FilterLiteral)
    if isinstance(formula, LabelLiteral):
        return table.score_bounds(*formula, rows, is_upper=is_upper)
    if isinstance(formula, Conjunction):
        bounds = np.zeros(len(rows))
        for term in formula.terms:
            bounds += bound_scores(table, term, rows, is_upper=is_upper)
        return bounds
    negation = negate_formula(formula)
    return log_complement(bound_scores(table, negation, rows, is_upper=not is_upper))
