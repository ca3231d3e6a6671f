"""Random formulas of labels and filters."""

from hypothesis import strategies as st

from surelabel.retrieval.formula import (
    FilterLiteral,
    LabelLiteral,
    make_conjunction,
    make_disjunction,
)


def formulas(n_labels, n_filters=0, max_leaves=12):
    """Formulas in negation normal form, in which labels and filters are repeated."""
    leaves = st.builds(LabelLiteral, st.integers(0, n_labels - 1), st.sampled_from([1, -1]))
    if n_filters:
        numbers = st.integers(0, n_filters - 1)
        leaves |= st.builds(FilterLiteral, numbers, st.sampled_from([1, -1]))
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            lambda make, terms: make(terms),
            st.sampled_from([make_conjunction, make_disjunction]),
            st.lists(inner, min_size=1, max_size=4),
        ),
        max_leaves=max_leaves,
    )


def is_true(formula, labels, filters=()):
    """Truth value of a formula, by recursion over its terms."""
    if isinstance(formula, LabelLiteral):
        return labels[formula.column] == (formula.sign > 0)
    if isinstance(formula, FilterLiteral):
        return filters[formula.number] == (formula.sign > 0)
    values = [is_true(term, labels, filters) for term in formula.terms]
    return all(values) if type(formula).__name__ == "Conjunction" else any(values)
