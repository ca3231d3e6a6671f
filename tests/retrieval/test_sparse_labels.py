"""The sparse form of a label keeps large log-odds and the expected number of images."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from surelabel.errors import InputError
from surelabel.retrieval.sparse_labels import (
    SparseLabel,
    check_drop_below,
    describe_sparse_label_damage,
    encode_sparse_label,
)

LOGITS = st.lists(st.floats(-40, 40, width=32), max_size=20).map(
    lambda values: np.array(values, np.float32)
)
LIMITS = st.sampled_from([1e-300, 1e-12, 0.001, 0.01, 0.3, 0.5]) | st.floats(1e-9, 0.5)


def written_out(label, n):
    """Log-odds of all rows of a sparse label."""
    values = np.full(n, label.default, np.float32)
    values[label.rows] = label.logits
    return values


@given(logits=LOGITS, drop_below=LIMITS)
def test_large_probabilities_are_unchanged_and_the_sum_of_all_is_that_of_the_label(
    logits, drop_below
):
    label = encode_sparse_label(logits, drop_below)
    values = written_out(label, len(logits))
    is_large = expit(logits.astype(float)) >= drop_below * (1 + 1e-12)
    assert np.array_equal(values[is_large], logits[is_large])
    assert (np.diff(label.rows) > 0).all()
    assert (expit(values.astype(float)) < drop_below)[
        ~np.isin(range(len(logits)), label.rows)
    ].all()
    sums = [expit(part.astype(float)).sum() for part in (values, logits)]
    assert sums[0] == pytest.approx(sums[1], rel=1e-5)
    assert describe_sparse_label_damage(label, len(logits)) is None


@given(logits=LOGITS.filter(len), drop_below=LIMITS)
def test_a_second_encoding_with_the_same_limit_changes_nothing(logits, drop_below):
    first = encode_sparse_label(logits, drop_below)
    again = encode_sparse_label(written_out(first, len(logits)), drop_below)
    assert again.rows.tolist() == first.rows.tolist()
    assert again.default == first.default


def test_a_default_that_is_rounded_up_stays_below_the_limit():
    limit = expit(np.nextafter(np.float32(-3), np.float32(0)).astype(float))
    below = np.full(5, np.float32(-3))
    label = encode_sparse_label(below, float(limit))
    assert len(label.rows) == 0
    assert label.default == np.float32(-3)


@pytest.mark.parametrize("drop_below", [0, 0.51, 1, -0.1, float("nan"), float("inf")])
def test_a_limit_outside_of_the_range_is_refused(drop_below):
    with pytest.raises(InputError, match=r"drop_below must be in \(0, 0\.5\]; got"):
        check_drop_below(drop_below)


@pytest.mark.parametrize(
    ("rows", "logits", "message"),
    [
        ([-1, 3], [1, 2], r"row numbers must be in \[0, 9\)"),
        ([3, 9], [1, 2], r"row numbers must be in \[0, 9\)"),
        ([3, 3], [1, 2], "row numbers must be increasing"),
        ([4, 3], [1, 2], "row numbers must be increasing"),
        ([3, 4], [1, np.nan], "the log-odds must be finite"),
        ([3, 4], [1, np.inf], "the log-odds must be finite"),
        ([3, 4], [1, -5], "must be above those of the other images, -5; got -5"),
    ],
)
def test_impossible_labels_are_described(rows, logits, message):
    label = SparseLabel(np.array(rows, np.int32), np.array(logits, np.float32), np.float32(-5))
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(describe_sparse_label_damage(label, 9))
