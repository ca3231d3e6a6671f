"""The encoding of a label: which one is chosen, and that no value is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.retrieval import label_encoding
from surelabel.retrieval.label_encoding import (
    SMALL_SHARD_ROWS,
    StepTable,
    describe_step_table_damage,
    encode_label,
)
from surelabel.retrieval.sort_keys import floats_of_sort_keys

N_LARGE = SMALL_SHARD_ROWS + 5


def decoded(label):
    """Log-odds and raw scores of an encoded label."""
    values = floats_of_sort_keys(label.keys)
    if label.steps is not None:
        return label.steps.logits_of_scores(values), values
    return values, values if label.scores is None else label.scores


@given(
    scores=st.lists(st.integers(-4, 4), min_size=1, max_size=20),
    levels=st.lists(st.integers(-2, 2), min_size=9, max_size=9),
    is_sorted=st.booleans(),
)
def test_a_small_label_gives_back_all_its_values(scores, levels, is_sorted):
    table = sorted(levels) if is_sorted else levels
    scores = np.array(scores, np.float32)
    logits = np.array(table, np.float32)[(scores + 4).astype(int)]
    label = encode_label(logits, scores)
    assert label.has_scores
    for values, expected in zip(decoded(label), (logits, scores), strict=True):
        assert np.array_equal(values, expected)
    is_function_of_steps = is_sorted and 2 * len(set(logits.tolist())) <= len(scores)
    if is_function_of_steps and not np.array_equal(logits, scores):
        assert label.steps is not None
        assert label.scores is None


def test_a_step_function_of_a_large_label_is_stored_as_raw_scores_with_steps():
    scores = np.random.default_rng(0).standard_normal(N_LARGE).astype(np.float32)
    logits = np.floor(3 * scores)
    label = encode_label(logits, scores)
    assert len(label.steps.logits) == len(np.unique(logits))
    assert label.scores is None
    assert np.array_equal(decoded(label)[0], logits)


def test_a_strict_function_of_a_large_label_is_stored_as_log_odds_alone():
    scores = np.random.default_rng(0).normal(0.01, 0.002, N_LARGE).astype(np.float32)
    logits = (30 * scores.astype(float) - 9).astype(np.float32)
    assert len(np.unique(logits)) < len(np.unique(scores))  # float32 makes some of them equal
    label = encode_label(logits, scores)
    assert (label.steps, label.scores, label.has_scores) == (None, None, False)
    assert np.array_equal(decoded(label)[0], logits)


def test_a_large_label_with_a_wide_plateau_and_no_steps_stores_both(monkeypatch):
    monkeypatch.setattr(label_encoding, "MAX_STEPS", 1000)
    scores = np.random.default_rng(0).standard_normal(N_LARGE).astype(np.float32)
    label = encode_label(np.minimum(scores, 0), scores)
    assert label.steps is None
    assert np.array_equal(label.scores, scores)


def test_raw_scores_equal_to_the_log_odds_are_not_stored_again():
    values = np.array([1.0, -0.0, 1.0, 3.5], np.float32)
    label = encode_label(values, values)
    assert (label.steps, label.scores, label.has_scores) == (None, None, True)
    assert not encode_label(values, None).has_scores


def test_a_threshold_of_the_log_odds_is_one_of_the_raw_scores():
    table = StepTable(np.array([0.1, 0.4, 0.9], np.float32), np.array([-3, 0, 5], np.float32))
    limits = [np.float32(limit) for limit in (-9, -3, -1, 0, 5, 6)]
    lowest = [round(table.lowest_score(limit), 3) for limit in limits]
    assert lowest == [0.1, 0.1, 0.4, 0.4, 0.9, np.inf]
    above = [round(table.score_above(limit), 3) for limit in limits]
    assert above == [0.1, 0.4, 0.4, 0.9, np.inf, np.inf]


@given(
    scores=st.lists(st.floats(-9, 9, width=32), min_size=4, max_size=20),
    levels=st.integers(1, 3),
)
def test_the_step_table_of_a_label_is_valid_down_to_its_lowest_score(scores, levels):
    scores = np.array(scores, np.float32)
    steps = encode_label(np.floor(scores * levels), scores).steps
    if steps is not None:
        assert describe_step_table_damage(steps, scores.min()) is None
        above = np.nextafter(scores.min(), np.float32(-np.inf))
        assert describe_step_table_damage(steps, above).startswith(
            "the score of the first step must"
        )


@pytest.mark.parametrize("values", [[0, np.nan], [-np.inf, 0], [0, np.inf], [0, 0], [1, 0]])
def test_steps_that_are_not_finite_or_not_increasing_are_described(values):
    valid, values = np.array([0, 1], np.float32), np.array(values, np.float32)
    kind = "increasing" if np.isfinite(values).all() else "finite"
    for steps, name in (
        (StepTable(values, valid), "scores"),
        (StepTable(valid, values), "log-odds"),
    ):
        expected = f"the {name} of a step table must be {kind}"
        assert describe_step_table_damage(steps, np.float32(5)) == expected
