"""Candidate rows contain the best rows, and their floor is reached by enough rows."""

import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.retrieval.candidate_rows import CandidateRows
from surelabel.retrieval.formula import LabelLiteral, make_conjunction
from surelabel.retrieval.formula_scores import score_rows
from surelabel.retrieval.label_table import FloatLabelTable

sys.path.insert(0, str(Path(__file__).parent))

from formula_strategies import formulas


class LooseLabelTable(FloatLabelTable):
    """Label table whose bounds are not exact."""

    def score_bounds(self, column, sign, rows, *, is_upper):
        scores = super().score_bounds(column, sign, rows, is_upper=is_upper)
        return np.minimum(scores + 0.3, 0) if is_upper else scores - 0.3


def table_of(seed, n=200):
    random = np.random.default_rng(seed)
    logits = np.round(2 * random.standard_normal((4, n)), 1).astype(np.float32)
    return LooseLabelTable(logits, logits, np.argsort(-logits, axis=1).astype(np.int32))


@settings(deadline=None, max_examples=150)
@given(
    formula=formulas(4),
    seed=st.integers(0, 10**6),
    k=st.integers(1, 30),
    cuts=st.lists(st.integers(0, 200), max_size=4),
)
def test_the_best_rows_remain_after_rows_were_added_in_parts(formula, seed, k, cuts):
    table = table_of(seed)
    order = np.random.default_rng(seed).permutation(200)
    candidates, floors = CandidateRows(table, formula, k), []
    for rows in np.split(order, sorted(cuts)):
        candidates.add(rows)
        floors.append(candidates.floor)
    scores = score_rows(table, formula, np.arange(200))
    k_th_highest = np.sort(scores)[-k]
    assert floors == sorted(floors)
    assert floors[-1] <= k_th_highest or np.isclose(floors[-1], k_th_highest, rtol=1e-9)
    rows, row_scores = candidates.scored_rows()
    assert len(set(rows.tolist())) == len(rows)
    assert set(np.flatnonzero(scores >= k_th_highest).tolist()) <= set(rows.tolist())
    assert np.array_equal(row_scores, scores[rows])


def test_few_rows_are_scored_at_the_end():
    table = FloatLabelTable(
        *np.random.default_rng(0).standard_normal((2, 3, 10_000)).astype(np.float32),
        np.empty((3, 0), np.int32),
    )
    candidates = CandidateRows(table, make_conjunction([LabelLiteral(i, 1) for i in range(3)]), 20)
    for rows in np.split(np.arange(10_000), 5):
        candidates.add(rows)
    assert len(candidates.scored_rows()[0]) == 20
