"""The best rows, against scoring every row."""

import json
import sys
from math import exp, log1p
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.retrieval import formula_search
from surelabel.retrieval.formula import (
    TRUE,
    Disjunction,
    LabelLiteral,
    make_conjunction,
    make_disjunction,
    polarities_of_formula,
)
from surelabel.retrieval.formula_probability import formula_log_probability, read_logits_of_columns
from surelabel.retrieval.formula_search import (
    RankedRows,
    lowest_logit_at_floor,
    merge_ranked_rows,
    plan_formula_search,
    search_formula,
    term_floor_of_disjunction,
)
from surelabel.retrieval.label_table import FloatLabelTable

sys.path.insert(0, str(Path(__file__).parent))

from formula_strategies import formulas

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "retrieval.json").read_text())


def conjunction(literals):
    return make_conjunction([LabelLiteral(*literal) for literal in literals])


def search_conjunction(table, literals, k):
    return search_formula(table, conjunction(literals), k)


def log_probability(logits, literals, rows):
    return formula_log_probability(conjunction(literals), read_logits_of_columns(logits), rows)


def table_of(logits, scores=None, is_active=None):
    """Label-major arrays as a shard holds them."""
    logits = np.asarray(logits, np.float32)
    scores = logits if scores is None else np.asarray(scores, np.float32)
    return FloatLabelTable(
        logits,
        scores,
        np.argsort(-logits, axis=1).astype(np.int32),
        is_active,
    )


def by_hand(table, literals):
    """Every active row with its key, sorted: plain loops over floats."""
    keys = []
    for row in range(table.values.shape[1]):
        if table.is_active is not None and not table.is_active[row]:
            continue
        score = tie = 0.0
        for column, sign in literals:
            z = sign * float(table.values[column, row])
            score += min(z, 0.0) - log1p(exp(-abs(z)))
            tie += sign * float(table.scores[column, row])
        keys.append((-score, -tie, row))
    return sorted(keys)


def random_table(random, n, c, kind):
    """Log-odds of one of three kinds: spread out, saturated, or with many ties."""
    logits = 2 * random.standard_normal((c, n)) + random.standard_normal(n) - 2
    if kind == "saturated":
        logits = np.clip(20 * logits, -40, 40)
    if kind == "tied":
        logits = np.round(logits / 3)
    active = random.random(n) < 0.7 if random.random() < 0.3 else None
    return table_of(logits, np.round(random.standard_normal((c, n))), active)


def make_limits_small(patch, few):
    """Set limits with which small tables take every path."""
    patch.setattr(formula_search, "HEAD_ROWS", 4)
    patch.setattr(formula_search, "FIRST_BLOCK_ROWS", 16)
    patch.setattr(formula_search, "BLOCK_ROWS", 64)
    patch.setattr(formula_search, "SAMPLED_ROWS", 5)
    patch.setattr(formula_search, "SPARSE_SHARE", few)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 400),
    kind=st.sampled_from(["spread", "saturated", "tied"]),
    signs=st.lists(st.sampled_from([1, -1]), min_size=1, max_size=5),
    k=st.integers(1, 30),
    few=st.sampled_from([0.0, 1 / 32, 1.0]),
)
def test_the_best_rows_are_those_of_scoring_every_row(seed, n, kind, signs, k, few):
    table = random_table(np.random.default_rng(seed), n, 5, kind)
    literals = list(enumerate(signs))
    with pytest.MonkeyPatch.context() as patch:
        make_limits_small(patch, few)
        found = search_conjunction(table, literals, k)
    expected = by_hand(table, literals)[:k]
    np.testing.assert_allclose(found.scores, [-key[0] for key in expected], rtol=1e-13)
    exact = log_probability(table.values, literals, slice(None))
    ties = sum(sign * table.scores[column].astype(float) for column, sign in literals)
    rows = np.arange(n) if table.is_active is None else np.flatnonzero(table.is_active)
    full = RankedRows(rows, exact[rows], np.asarray(ties)[rows]).select_best(k)
    assert found.rows.tolist() == full.rows.tolist()


@pytest.mark.parametrize("signs", [(1,), (-1,), (1, 1), (1, -1), (1, 1, -1, -1), (-1, -1, -1)])
def test_a_large_table_gives_the_rows_of_scoring_every_row(signs):
    random = np.random.default_rng(len(signs))
    table = random_table(random, 100_000, 5, "spread")
    literals = list(enumerate(signs))
    found = search_conjunction(table, literals, 50)
    everything = log_probability(table.values, literals, slice(None))
    active = np.arange(100_000) if table.is_active is None else np.flatnonzero(table.is_active)
    best = active[np.argsort(-everything[active], kind="stable")[:50]]
    assert found.rows.tolist() == best.tolist()


@pytest.mark.parametrize("few", [0.0, 1.0])
@pytest.mark.parametrize("k", [1, 2])
def test_queries_of_eight_to_twelve_labels_are_exact(few, k, monkeypatch):
    monkeypatch.setattr(formula_search, "HEAD_ROWS", 2)
    monkeypatch.setattr(formula_search, "BLOCK_ROWS", 16)
    monkeypatch.setattr(formula_search, "SPARSE_SHARE", few)
    for seed in range(50):
        random = np.random.default_rng(seed)
        signs = random.choice([1, 1, -1], 8 + seed % 5)
        table = random_table(random, 60, len(signs), "spread")
        literals = [(column, int(sign)) for column, sign in enumerate(signs)]
        expected = [row for *_, row in by_hand(table, literals)[:k]]
        assert search_conjunction(table, literals, k).rows.tolist() == expected


def test_a_row_has_the_same_score_alone_and_among_others():
    table = table_of(np.random.default_rng(0).standard_normal((12, 500)))
    literals = [(column, 1) for column in range(12)]
    together = log_probability(table.values, literals, slice(None))
    alone = [log_probability(table.values, literals, np.array([row]))[0] for row in range(500)]
    assert together.tolist() == alone


def test_the_recorded_queries_find_the_recorded_images():
    table = table_of(np.array(GOLDEN["log_odds"]).T)
    for example in GOLDEN["examples"]:
        literals = [(j, 1) for j in example["pos"]] + [(j, -1) for j in example["neg"]]
        found = search_conjunction(table, literals, 3)
        assert found.rows.tolist() == example["top3"]
        np.testing.assert_allclose(found.scores, example["top3_log_score"], atol=1e-6)


def test_ties_are_broken_by_the_raw_score_and_then_by_the_row():
    table = table_of([[1.0, 1.0, 1.0, 1.0]], [[0.0, 5.0, 0.0, 9.0]])
    assert search_conjunction(table, [(0, 1)], 4).rows.tolist() == [3, 1, 0, 2]
    assert search_conjunction(table, [(0, -1)], 4).rows.tolist() == [0, 2, 1, 3]


def test_log_odds_that_saturate_as_probabilities_are_still_ordered():
    table = table_of([[18.0, 39.0, 40.0, 25.0]])
    assert (1 / (1 + np.exp(-table.values)) == 1).all()
    assert search_conjunction(table, [(0, 1)], 4).rows.tolist() == [2, 1, 3, 0]
    assert (np.diff(search_conjunction(table, [(0, 1)], 4).scores) < 0).all()


def test_more_rows_than_there_are_gives_all_that_live():
    active = np.array([True, False, True])
    assert search_conjunction(
        table_of([[1.0, 2.0, 3.0]], is_active=active), [(0, 1)], 99
    ).rows.tolist() == [
        2,
        0,
    ]
    nothing = search_conjunction(table_of([[1.0]], is_active=np.array([False])), [(0, 1)], 5)
    assert nothing.rows.tolist() == []


def test_what_several_tables_find_is_counted_through():
    parts = [
        search_conjunction(table_of([line]), [(0, 1)], 2) for line in ([1.0, 5.0], [3.0, 3.0, 9.0])
    ]
    assert merge_ranked_rows(parts, [0, 2]).select_best(3).rows.tolist() == [4, 1, 2]
    assert merge_ranked_rows([], [0]).select_best(3).rows.tolist() == []


@settings(max_examples=300, deadline=None)
@given(
    formula=formulas(4),
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    kind=st.sampled_from(["spread", "saturated", "tied"]),
    k=st.integers(1, 30),
    few=st.sampled_from([0.0, 1 / 32, 1.0]),
    share=st.sampled_from([None, 0.02, 0.5]),
    list_rows=st.sampled_from([3, 30, 4096]),
)
def test_the_best_rows_of_a_formula_are_those_of_scoring_every_row(
    formula, seed, n, kind, k, few, share, list_rows
):
    random = np.random.default_rng(seed)
    table = random_table(random, n, 4, kind)
    is_allowed = table.is_active if share is None else random.random(n) < share
    with pytest.MonkeyPatch.context() as patch:
        make_limits_small(patch, few)
        patch.setattr(formula_search, "LIST_ROWS", list_rows)
        found = search_formula(table, formula, k, None if share is None else is_allowed)
    read_logits = read_logits_of_columns(table.values)
    exact = np.broadcast_to(formula_log_probability(formula, read_logits, slice(None)), n)
    ties = np.zeros(n)
    for column, sign in polarities_of_formula(formula).items():
        ties = ties + sign * table.scores[column].astype(float)
    rows = np.arange(n) if is_allowed is None else np.flatnonzero(is_allowed)
    full = RankedRows(rows, exact[rows], ties[rows]).select_best(k)
    assert found.scores.tolist() == full.scores.tolist()
    assert found.rows.tolist() == full.rows.tolist()


@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, -1), (1, -1, 1)])
def test_a_disjunction_in_a_large_table_gives_the_rows_of_scoring_every_row(signs):
    table = random_table(np.random.default_rng(len(signs)), 100_000, 5, "spread")
    formula = Disjunction(tuple(LabelLiteral(*literal) for literal in enumerate(signs)))
    found = search_formula(table, formula, 50)
    read_logits = read_logits_of_columns(table.values)
    everything = formula_log_probability(formula, read_logits, slice(None))
    active = np.arange(100_000) if table.is_active is None else np.flatnonzero(table.is_active)
    best = active[np.argsort(-everything[active], kind="stable")[:50]]
    assert found.rows.tolist() == best.tolist()


def test_a_formula_without_labels_gives_the_first_rows():
    table = table_of([[1.0, 2.0, 3.0]], is_active=np.array([False, True, True]))
    found = search_formula(table, TRUE, 5)
    assert (found.rows.tolist(), found.scores.tolist()) == ([1, 2], [0.0, 0.0])
    found = search_formula(table, TRUE, 5, np.array([True, False, False]))
    assert found.rows.tolist() == [0]


@given(st.lists(st.floats(-30, -1e-9), min_size=1, max_size=5))
def test_a_term_of_a_disjunction_reaches_the_floor_of_terms(log_probabilities):
    none = sum(log1p(-np.exp(value)) for value in log_probabilities)  # accurate for small values
    either = np.log(-np.expm1(none))
    formula = Disjunction(tuple(LabelLiteral(i, 1) for i in range(len(log_probabilities))))
    floor = term_floor_of_disjunction(formula, either)
    logits = [value - np.log(-np.expm1(value)) for value in log_probabilities]
    assert max(logits) >= lowest_logit_at_floor(floor)
    shared = Disjunction((conjunction([(0, 1), (1, 1)]), conjunction([(0, 1), (2, 1)])))
    assert term_floor_of_disjunction(shared, -3.0) == -3.0 - np.log(2)


def test_lists_of_equal_length_bound_a_disjunction_of_frequent_and_rare_labels():
    random = np.random.default_rng(0)
    logits = random.standard_normal((3, 100_000)) + np.array([[-5.0], [-5.0], [2.0]])
    table = table_of(logits)
    formula = Disjunction(tuple(LabelLiteral(column, 1) for column in range(3)))
    plan = plan_formula_search(table, formula, 20)
    assert plan.method == "sorted lists"
    shared_floor = lowest_logit_at_floor(term_floor_of_disjunction(formula, plan.floor))
    assert plan.n_read < np.count_nonzero(logits >= shared_floor) / 2
    everything = formula_log_probability(formula, read_logits_of_columns(table.values), slice(None))
    expected = np.argsort(-everything, kind="stable")[:20]
    assert search_formula(table, formula, 20).rows.tolist() == expected.tolist()


def test_a_scan_reads_bounds_of_few_rows_and_the_values_of_fewer():
    random = np.random.default_rng(0)
    logits = random.standard_normal((3, 200_000)) - 1
    table, n_bounds, n_values = table_of(logits), [], []

    class CountedTable(FloatLabelTable):
        def score_bounds(self, column, sign, rows, *, is_upper):
            n_bounds.append(len(rows))
            return super().score_bounds(column, sign, rows, is_upper=is_upper)

        def logits(self, column, rows):
            n_values.append(len(rows))
            return super().logits(column, rows)

    counted = CountedTable(table.values, table.scores, table.order)
    formula = conjunction([(0, 1), (1, 1), (2, -1)])
    assert plan_formula_search(counted, formula, 50).method == "scan"
    n_bounds.clear()
    found = search_formula(counted, formula, 50)
    assert found.rows.tolist() == search_formula(table, formula, 50).rows.tolist()
    assert sum(n_bounds) < 60_000
    assert sum(n_values) == 3 * 50


def test_the_work_of_a_nested_formula_grows_slowly_with_its_depth():
    random, calls = np.random.default_rng(0), []
    logits = np.clip(10 * random.standard_normal((25, 40_000)), -40, 40).astype(np.float32)

    class CountedTable(FloatLabelTable):
        def clear_below_threshold(self, column, sign, lowest_logit, rows, out):
            calls.append(column)
            super().clear_below_threshold(column, sign, lowest_logit, rows, out)

    table = CountedTable(logits, logits, np.argsort(-logits, axis=1).astype(np.int32))
    formula = LabelLiteral(0, 1)
    for column in range(1, 25, 2):
        either = make_disjunction([LabelLiteral(column, 1), formula])
        formula = make_conjunction([LabelLiteral(column + 1, 1), either])
    found = search_formula(table, formula, 200)
    assert 0 < len(calls) < 25 * 25
    scores = formula_log_probability(formula, read_logits_of_columns(logits), slice(None))
    assert found.scores.tolist() == np.sort(scores)[::-1][:200].tolist()


def test_equal_certain_rows_of_a_disjunction_are_sorted_by_raw_score():
    logits = np.full((40, 10_000), -5.0, np.float32)
    logits[:, 9000:] = 40  # 1 - P is 0 in float64
    scores = np.tile(np.arange(10_000), (40, 1))
    table = table_of(logits, scores)
    formula = Disjunction(tuple(LabelLiteral(column, 1) for column in range(40)))
    found = search_formula(table, formula, 10)
    assert found.scores.tolist() == [0.0] * 10
    assert found.rows.tolist() == list(range(9999, 9989, -1))
