"""Probability of a formula, against the enumeration of all truth assignments."""

import sys
from fractions import Fraction
from itertools import product
from math import exp, log, log1p
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.retrieval import formula_probability
from surelabel.retrieval.formula import (
    FALSE,
    TRUE,
    Conjunction,
    Disjunction,
    LabelLiteral,
    make_conjunction,
    make_disjunction,
    negate_formula,
)
from surelabel.retrieval.formula_probability import (
    formula_log_probability,
    log_complement,
    log_sigmoid,
    read_logits_of_columns,
)

sys.path.insert(0, str(Path(__file__).parent))

from formula_strategies import formulas, is_true

A, B, C = (LabelLiteral(column, 1) for column in range(3))


def probability_by_hand(formula, logits):
    """Sum of the exact probabilities of all assignments for which a formula is true."""
    odds = [Fraction(exp(z)) for z in logits]
    positive = [odd / (1 + odd) for odd in odds]
    total = Fraction(0)
    for labels in product([False, True], repeat=len(logits)):
        if is_true(formula, labels):
            weight = Fraction(1)
            for p, value in zip(positive, labels, strict=True):
                weight *= p if value else 1 - p
            total += weight
    return total


@settings(max_examples=300, deadline=None)
@given(formulas(4), st.lists(st.floats(-40, 40), min_size=4, max_size=4))
def test_the_probability_is_the_sum_over_all_assignments(formula, logits):
    read_logits = read_logits_of_columns(np.array(logits)[:, None])
    (found,) = np.atleast_1d(formula_log_probability(formula, read_logits, slice(None)))
    expected = probability_by_hand(formula, logits)
    if expected == 0:
        assert found == -np.inf
    else:
        is_high = expected > Fraction(1, 2)
        log_expected = log1p(float(expected - 1)) if is_high else log(float(expected))
        assert found == pytest.approx(log_expected, rel=1e-10)


@pytest.mark.parametrize(
    ("formula", "probability"),
    [
        (Conjunction((A, negate_formula(A))), 0.0),
        (Disjunction((A, negate_formula(A))), 1.0),
        (Conjunction((A, B)), 0.25),
        (Disjunction((A, B)), 0.75),
        (Disjunction((Conjunction((A, B)), Conjunction((A, C)))), 0.375),
        (TRUE, 1.0),
        (FALSE, 0.0),
    ],
)
def test_labels_of_probability_one_half_count_assignments(formula, probability):
    read_logits = read_logits_of_columns(np.zeros((3, 1)))
    log_probability = formula_log_probability(formula, read_logits, slice(None))
    np.testing.assert_allclose(np.exp(log_probability), probability, atol=1e-15)


def test_small_and_large_probabilities_are_accurate():
    assert log_complement([-1e-300, -40.0, -1e6, -np.inf]).tolist() == pytest.approx(
        [log(1e-300), -exp(-40), 0.0, 0.0], rel=1e-15
    )
    assert log_complement(0.0) == -np.inf
    assert log_sigmoid([-40.0, 40.0]).tolist() == pytest.approx([-40.0, -exp(-40)], rel=1e-12)
    read_logits = read_logits_of_columns(np.array([[-40.0], [-39.0]]))
    either = formula_log_probability(Disjunction((A, B)), read_logits, slice(None))
    assert either[0] == pytest.approx(log(exp(-40) + exp(-39)), rel=1e-14)
    neither = formula_log_probability(negate_formula(Disjunction((A, B))), read_logits, slice(None))
    assert neither[0] == pytest.approx(-(exp(-40) + exp(-39)), rel=1e-12)


@pytest.mark.parametrize("n_labels", [9, 12])
def test_a_majority_of_many_labels_is_the_tail_of_their_number(n_labels):
    majority = make_disjunction(
        [
            make_conjunction([LabelLiteral(column, 1) for column in chosen])
            for chosen in _subsets(n_labels, 2)
        ]
    )
    logits = np.random.default_rng(0).normal(size=(n_labels, 50))
    found = formula_log_probability(majority, read_logits_of_columns(logits), slice(None))
    p = 1 / (1 + np.exp(-logits))
    none = np.prod(1 - p, axis=0)
    one = sum(none * p[column] / (1 - p[column]) for column in range(n_labels))
    np.testing.assert_allclose(np.exp(found), 1 - none - one, rtol=1e-10)


def test_rows_in_blocks_have_the_same_probability(monkeypatch):
    monkeypatch.setattr(formula_probability, "_EXPANDED_ROWS", 7)
    read_logits = read_logits_of_columns(np.random.default_rng(0).normal(size=(3, 50)))
    formula = Disjunction((Conjunction((A, B)), Conjunction((negate_formula(A), C))))
    rows = np.random.default_rng(1).permutation(50)
    whole = formula_log_probability(formula, read_logits, slice(None))
    assert formula_log_probability(formula, read_logits, rows).tolist() == whole[rows].tolist()


def _subsets(n, size):
    return [
        chosen for chosen in product(range(n), repeat=size) if list(chosen) == sorted(set(chosen))
    ]


def test_a_formula_that_is_false_has_no_probability_above_1_for_its_negation():
    a, not_a, b = LabelLiteral(0, 1), LabelLiteral(0, -1), LabelLiteral(1, 1)
    formula = Disjunction((Conjunction((a, not_a)), Conjunction((a, not_a, b))))
    logits = 4 * np.random.default_rng(0).standard_normal((2, 1000))
    for rounded in (formula, negate_formula(formula)):
        scores = formula_log_probability(rounded, read_logits_of_columns(logits), slice(None))
        assert not np.isnan(scores).any()
        assert (scores <= 0).all()
