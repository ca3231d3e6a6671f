import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from surelabel.decisions import track
from surelabel.decisions.record import THRESHOLDS
from surelabel.decisions.tracking import PICTURES


def drawn(seed, pictures=30, labels=4, graded=False):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=4, size=(pictures, labels))
    targets = rng.random(logits.shape)
    known = rng.random(logits.shape) < 0.7
    known[0] = False
    return logits, targets if graded else (targets < expit(logits)).astype(float), known


def by_hand(logits, targets, known, threshold):
    """Everything that a record says of one threshold, decision by decision."""
    labels = range(logits.shape[1])
    shown, present, expected = ([0.0 for _ in labels] for _ in range(3))
    tagged, wrong, missed = 0, 0.0, 0.0
    for z, y, k in zip(logits, targets, known, strict=True):
        show = [bool(k[c]) and expit(z[c]) >= threshold and threshold < 1 for c in labels]
        for c in labels:
            shown[c] += show[c]
            present[c] += show[c] * y[c]
            expected[c] += show[c] * expit(z[c])
        if any(show):
            tagged += 1
            wrong += sum(show[c] * (1 - y[c]) for c in labels) / sum(show)
        there = sum(y[c] for c in labels if k[c])
        if there > 0:
            missed += sum(y[c] for c in labels if k[c] and not show[c]) / there
    return shown, present, expected, tagged, wrong, missed


@given(seed=st.integers(0, 100), graded=st.booleans(), place=st.integers(0, THRESHOLDS.size - 1))
def test_equals_counting_one_by_one(seed, graded, place):
    data = drawn(seed, graded=graded)
    r = track(*data)
    found = (r.shown, r.present, r.expected, r.tagged, r.wrong, r.missed)
    for ours, expected in zip(found, by_hand(*data, THRESHOLDS[place]), strict=True):
        np.testing.assert_allclose(ours[..., place], expected, atol=1e-9)


def test_a_picture_of_which_nothing_is_known_is_left_out():
    logits, targets, known = drawn(0)
    record = track(logits, targets, known)
    assert record.pictures == np.count_nonzero(known.any(axis=1)) == len(known) - 1
    assert record.with_labels == np.count_nonzero((targets * known).any(axis=1))
    np.testing.assert_array_equal(record.wrong, track(logits[1:], targets[1:], known[1:]).wrong)


def test_a_probability_at_a_threshold_is_shown_and_one_just_below_is_not():
    at = np.arange(-80, 81)[None] / 10
    record = track(at, np.ones_like(at))
    for label, place in enumerate(range(1, THRESHOLDS.size - 1)):
        assert record.shown[label, place] == 1
        assert record.shown[label, place + 1] == 0


def test_at_threshold_one_not_even_certainty_is_shown():
    record = track([[40.0]], [[1.0]])
    assert record.shown[0, -2:].tolist() == [1, 0]
    assert record.missed[-2:].tolist() == [0, 1]


def test_many_pictures_count_as_their_parts_together():
    logits, targets, known = drawn(1, pictures=2 * PICTURES + 5, labels=2)
    whole = track(logits, targets, known)
    parts = track(logits[:99], targets[:99], known[:99])
    parts += track(logits[99:], targets[99:], known[99:])
    for name, value in whole.state().items():
        np.testing.assert_allclose(parts.state()[name], value)


def test_half_precision_logits_are_taken():
    logits, targets, known = drawn(2)
    half = logits.astype(np.float16)
    np.testing.assert_array_equal(
        track(half, targets, known).shown, track(half.astype(float), targets, known).shown
    )


@pytest.mark.parametrize(
    ("logits", "targets", "match"),
    [
        ([[1.0, np.nan]], [[1, 0]], r"logits must be finite numbers\. Got 1"),
        ([[1.0, 2.0]], [[1, 2]], r"targets must lie in \[0, 1\].*Got 2"),
        ([[1.0, 2.0]], [[1]], r"\(1, 2\).*\(1, 1\)"),
        ([[1.0, 2.0]], [[np.nan, np.nan]], "Got 1 pictures and nothing known"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "Got 0 pictures and nothing known"),
    ],
)
def test_bad_input_is_named(logits, targets, match):
    with pytest.raises(ValueError, match=match):
        track(logits, targets)
