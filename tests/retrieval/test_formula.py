"""Formulas, against their truth tables."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.retrieval.formula import (
    FALSE,
    TRUE,
    Conjunction,
    Disjunction,
    LabelLiteral,
    columns_of_formula,
    independent_factors,
    is_formula_true,
    make_conjunction,
    make_disjunction,
    negate_formula,
    polarities_of_formula,
    restrict_filters,
    restrict_labels,
)

sys.path.insert(0, str(Path(__file__).parent))

from formula_strategies import formulas, is_true

A, B, C = (LabelLiteral(column, 1) for column in range(3))
ASSIGNMENTS = list(product([False, True], repeat=3))


@settings(max_examples=200, deadline=None)
@given(formulas(3, 2), st.tuples(st.booleans(), st.booleans()))
def test_operations_keep_the_truth_table(formula, filters):
    without_filters = restrict_filters(formula, dict(enumerate(filters)))
    factors = independent_factors(without_filters)
    for labels in ASSIGNMENTS:
        value = is_true(formula, labels, filters)
        assert is_true(negate_formula(formula), labels, filters) is not value
        assert is_true(without_filters, labels) is value
        assert all(is_true(factor, labels) for factor in factors) is value
        restricted = restrict_labels(without_filters, {1: labels[1]})
        assert 1 not in columns_of_formula(restricted)
        assert is_true(restricted, labels) is value
    truth = is_formula_true(without_filters, np.array(ASSIGNMENTS).T)
    assert truth.tolist() == [is_true(formula, labels, filters) for labels in ASSIGNMENTS]


@given(formulas(6))
def test_factors_have_no_common_label(formula):
    columns = [set(columns_of_formula(factor)) for factor in independent_factors(formula)]
    assert sum(map(len, columns)) == len(set().union(*columns))


def test_constants_and_repeated_terms_are_removed():
    assert make_conjunction([A, TRUE, A]) == A
    assert make_conjunction([A, FALSE]) == FALSE
    assert make_conjunction([]) == TRUE
    assert make_disjunction([A, FALSE, A]) == A
    assert make_disjunction([A, TRUE]) == TRUE
    assert make_disjunction([]) == FALSE
    assert make_conjunction([A, Conjunction((B, C))]) == Conjunction((A, B, C))
    assert make_disjunction([Disjunction((A, B)), C]) == Disjunction((A, B, C))


def test_factors_are_joined_by_a_term_with_labels_of_both():
    joined = independent_factors(Conjunction((A, B, C, Disjunction((A, C)))))
    assert joined == [Conjunction((A, C, Disjunction((A, C)))), B]


def test_a_label_with_both_signs_has_the_polarity_0():
    formula = Disjunction((Conjunction((A, negate_formula(B))), negate_formula(A), C))
    assert polarities_of_formula(formula) == {0: 0, 1: -1, 2: 1}
