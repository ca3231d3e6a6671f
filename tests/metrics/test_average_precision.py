import tracemalloc
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score

from surelabel.errors import InputError
from surelabel.metrics import (
    average_precision,
    average_precision_per_class,
    average_precision_per_image,
)

few = st.sampled_from([-3.0, 0.0, 0.1, 0.5, 0.5, 1e6])
scores = arrays(float, (9, 5), elements=few)
targets = arrays(float, (9, 5), elements=st.sampled_from([0.0, 1.0]))
known = arrays(bool, (9, 5))


def by_scikit_learn(score, target, known):
    if not target[known].any():
        return np.nan
    return average_precision_score(target[known], score[known])


@given(scores, targets, known)
@settings(max_examples=40)
def test_equals_scikit_learn_with_ties_and_unknown_targets(s, t, k):
    columns = [by_scikit_learn(s[:, c], t[:, c], k[:, c]) for c in range(5)]
    rows = [by_scikit_learn(s[n], t[n], k[n]) for n in range(9)]
    np.testing.assert_allclose(average_precision_per_class(s, t, k), columns)
    np.testing.assert_allclose(average_precision_per_image(s, t, k), rows)
    np.testing.assert_allclose(average_precision(s, t, k), by_scikit_learn(s, t, k))


@pytest.mark.parametrize(
    "spread",
    [
        lambda s: s,
        lambda s: np.exp(9 * s),
        lambda s: 1 + 1e-12 * s,  # all the same in float32
        lambda s: 1e300 * s,  # infinite in float32
        lambda s: np.round(s, 1) * 0.0 * np.sign(s),  # 0 and -0 are the same score
        lambda s: np.round(2 * s),
        lambda s: np.r_[s[:-1], 1e9],
    ],
)
def test_any_spread_of_scores_equals_scikit_learn(spread):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(3000)
    s, t = spread(z), rng.random(3000) < 1 / (1 + np.exp(3 - 2 * z))
    expected = average_precision_score(t, s)
    assert average_precision(s[:, None], t[:, None]) == pytest.approx(expected, abs=1e-14)


def test_a_class_without_positives_is_undefined_not_zero():
    assert np.isnan(average_precision_per_class([[0.3], [0.6]], [[0], [0]])).all()


def test_all_tied_is_the_share_of_positives():
    assert average_precision([[0.5] * 4], [[1, 0, 0, 0]]) == 0.25


def test_the_answer_does_not_depend_on_how_many_images_are_compared_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    s, t = rng.random((50, 6)), rng.integers(0, 2, (50, 6))
    whole = average_precision_per_image(s, t)
    monkeypatch.setattr(import_module("surelabel.metrics.average_precision"), "ROWS_PER_BLOCK", 7)
    np.testing.assert_array_equal(average_precision_per_image(s, t), whole)


def test_memory_stays_small_where_many_of_many_labels_are_present():
    s = np.random.default_rng(0).random((100, 600))
    tracemalloc.start()
    average_precision_per_image(s, np.ones_like(s))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 60e6  # every label against every other of all images: 288 MB


def test_graded_targets_are_refused():
    with pytest.raises(InputError, match=r"0 or 1; got 0\.5"):
        average_precision([[0.1, 0.2]], [[1, 0.5]])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_not_numbers_are_refused(bad):
    with pytest.raises(InputError, match="scores must be finite"):
        average_precision([[0.1, bad]], [[1, 0]])
