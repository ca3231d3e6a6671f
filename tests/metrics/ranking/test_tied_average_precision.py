"""Average precision of one ranking and of rows against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.metrics.ranking import tied_average_precision
from surelabel.metrics.ranking.tied_average_precision import (
    tied_average_precision_of_ranking,
    tied_average_precision_of_rows,
)

finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
tied = st.sampled_from(
    [-1e300, -2.0, -0.0, 0.0, 5e-324, 1e-45, 1e-40, 0.5, 0.5 + 1e-16, 3.0, 1e300]
)
near_one = st.integers(0, 40).map(lambda step: 1 + step * 2.0**-52)  # one value in float32
rankings = st.one_of(
    *(
        st.lists(st.tuples(scores, st.booleans()), min_size=1, max_size=60)
        for scores in (finite, tied, near_one, st.one_of(finite, tied, near_one))
    )
)


def by_loops(scores, is_positive):
    precisions = []
    for score, positive in zip(scores, is_positive, strict=True):
        if positive:
            above = [p for s, p in zip(scores, is_positive, strict=True) if s >= score]
            precisions.append(sum(above) / len(above))
    return sum(precisions) / len(precisions) if precisions else np.nan


@given(rankings, st.integers(1, 9))
def test_blocks_of_scores_give_the_same_value(ranking, n_scores):
    scores, is_positive = map(np.array, zip(*ranking, strict=True))
    whole = tied_average_precision_of_ranking(scores, is_positive)
    before = tied_average_precision.SCORES_PER_BLOCK
    tied_average_precision.SCORES_PER_BLOCK = n_scores
    try:
        in_blocks = tied_average_precision_of_ranking(scores, is_positive)
    finally:
        tied_average_precision.SCORES_PER_BLOCK = before
    np.testing.assert_equal(in_blocks, whole)  # also NaN


@given(rankings)
@settings(max_examples=300)
def test_any_finite_scores_equal_loops(ranking):
    scores, is_positive = map(np.array, zip(*ranking, strict=True))
    expected = pytest.approx(by_loops(scores, is_positive), abs=1e-13, nan_ok=True)
    assert tied_average_precision_of_ranking(scores, is_positive) == expected
    known = np.ones((1, len(scores)), bool)
    assert tied_average_precision_of_rows(scores[None], is_positive[None], known) == expected


@given(rankings, st.data())
@settings(max_examples=50)
def test_unknown_labels_of_a_row_are_left_out(ranking, data):
    scores, is_positive = map(np.array, zip(*ranking, strict=True))
    known = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    expected = pytest.approx(by_loops(scores[known], is_positive[known]), abs=1e-13, nan_ok=True)
    got = tied_average_precision_of_rows(scores[None], (is_positive & known)[None], known[None])
    assert got == expected


@pytest.mark.parametrize("n_positives", [1, 2, 700, 2999, 3000])
@pytest.mark.parametrize("bits", [0, 1, 4, 15])
def test_the_size_of_the_buckets_does_not_change_the_value(n_positives, bits, monkeypatch):
    random = np.random.default_rng(n_positives)
    scores = np.round(random.normal(size=3000), 2) + random.choice([0, 1e-9], 3000)
    is_positive = random.permutation(3000) < n_positives
    order = np.argsort(-scores, kind="stable")
    last_of_ties = np.searchsorted(-scores[order], -scores[is_positive], side="right")
    n_positives_above = is_positive[order].cumsum()[last_of_ties - 1]
    monkeypatch.setattr(tied_average_precision, "BUCKET_BITS", bits)
    value = tied_average_precision_of_ranking(scores, is_positive)
    assert value == pytest.approx((n_positives_above / last_of_ties).mean(), abs=1e-13)
