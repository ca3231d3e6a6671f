import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from surelabel.decisions import ValidationRecord, record_validation
from surelabel.decisions.validation_record import IMAGES_PER_BLOCK, THRESHOLDS
from surelabel.errors import DataError, InputError


def drawn(seed, images=30, labels=4, graded=False):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=4, size=(images, labels))
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
    r = record_validation(*data)
    found = (
        r.predicted_positives,
        r.true_positives,
        r.expected_true_positives,
        r.images_with_predictions,
        r.false_discovery_sum,
        r.false_negative_sum,
    )
    for ours, expected in zip(found, by_hand(*data, THRESHOLDS[place]), strict=True):
        np.testing.assert_allclose(ours[..., place], expected, atol=1e-9)


def test_a_image_of_which_nothing_is_known_is_left_out():
    logits, targets, known = drawn(0)
    record = record_validation(logits, targets, known)
    assert record.images == np.count_nonzero(known.any(axis=1)) == len(known) - 1
    assert record.images_with_positives == np.count_nonzero((targets * known).any(axis=1))
    np.testing.assert_array_equal(
        record.false_discovery_sum,
        record_validation(logits[1:], targets[1:], known[1:]).false_discovery_sum,
    )


def test_a_probability_at_a_threshold_is_shown_and_one_just_below_is_not():
    at = np.arange(-80, 81)[None] / 10
    record = record_validation(at, np.ones_like(at))
    for label, place in enumerate(range(1, THRESHOLDS.size - 1)):
        assert record.predicted_positives[label, place] == 1
        assert record.predicted_positives[label, place + 1] == 0


def test_at_threshold_one_not_even_certainty_is_shown():
    record = record_validation([[40.0]], [[1.0]])
    assert record.predicted_positives[0, -2:].tolist() == [1, 0]
    assert record.false_negative_sum[-2:].tolist() == [0, 1]


def test_many_images_count_as_their_parts_together():
    logits, targets, known = drawn(1, images=2 * IMAGES_PER_BLOCK + 5, labels=2)
    whole = record_validation(logits, targets, known)
    parts = record_validation(logits[:99], targets[:99], known[:99])
    parts += record_validation(logits[99:], targets[99:], known[99:])
    for name, value in whole.state().items():
        np.testing.assert_allclose(parts.state()[name], value)


def test_half_precision_logits_are_taken():
    logits, targets, known = drawn(2)
    half = logits.astype(np.float16)
    np.testing.assert_array_equal(
        record_validation(half, targets, known).predicted_positives,
        record_validation(half.astype(float), targets, known).predicted_positives,
    )


@pytest.mark.parametrize(
    ("logits", "targets", "match"),
    [
        ([[1.0, np.nan]], [[1, 0]], r"logits must be finite numbers; got 1"),
        ([[1.0, 2.0]], [[1, 2]], r"targets must be in \[0, 1\].*got 2"),
        ([[1.0, 2.0]], [[1]], r"\(1, 2\).*\(1, 1\)"),
        ([[1.0, 2.0]], [[np.nan, np.nan]], "got 1 image without a known target"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "got 0 images without a known target"),
    ],
)
def test_bad_input_is_named(logits, targets, match):
    with pytest.raises(ValueError, match=match):
        record_validation(logits, targets)


@pytest.fixture
def record():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(50, 3))
    return record_validation(logits, rng.random((50, 3)), rng.random((50, 3)) < 0.8)


def test_comes_back_from_safetensors(record):
    again = ValidationRecord.restore(safetensors.numpy.load(safetensors.numpy.save(record.state())))
    assert (again.images, again.images_with_positives) == (
        record.images,
        record.images_with_positives,
    )
    for name, value in record.state().items():
        np.testing.assert_array_equal(again.state()[name], value)


def test_comes_back_from_lists(record):
    again = ValidationRecord.restore(
        {name: value.tolist() for name, value in record.state().items()}
    )
    np.testing.assert_array_equal(again.predicted_positives, record.predicted_positives)


def test_a_thousand_labels_take_few_megabytes():
    state = record_validation(np.zeros((1, 1000)), np.zeros((1, 1000))).state()
    assert sum(a.nbytes for a in state.values()) < 4e6


def test_support_is_what_is_present(record):
    np.testing.assert_array_equal(record.support, record.true_positives.max(axis=1))


def test_labels_per_image_are_the_mean_count_if_all_targets_are_known():
    logits, targets, _ = drawn(4, images=60)
    record = record_validation(logits, targets)
    for place in (0, 40, 81, 120, THRESHOLDS.size - 1):
        threshold = THRESHOLDS[place]
        predicted = (expit(logits) >= threshold) & (threshold < 1)
        assert record.predicted_labels_per_image[place] == pytest.approx(predicted.sum(1).mean())


def test_unknown_targets_do_not_lower_the_labels_per_image():
    record = record_validation(
        [[2.0, 2.0, 2.0], [2.0, -2.0, 2.0], [-2.0, 2.0, 2.0]],
        [[1, np.nan, np.nan], [1, 0, np.nan], [0, np.nan, np.nan]],
    )
    half = record.thresholds.searchsorted(0.5)
    assert record.predicted_labels_per_image[half] == pytest.approx(2 / 3 + 0 / 1)
    assert record.predicted_labels_per_image[0] == 2  # the third label has no known target


def test_records_of_other_labels_do_not_add_up(record):
    with pytest.raises(InputError, match=r"\(3, 163\) and \(1, 163\)"):
        record + record_validation([[0.0]], [[1.0]])


def changed(name, change):
    def damage(state):
        state[name] = change(state[name].copy())

    return damage


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda s: s.pop("false_discovery_sum"), "must contain thresholds, .*Calibrate again"),
        (lambda s: s.update(more=np.ones(1)), "got .*more"),
        (
            changed("predicted_positives", lambda a: a.astype(str)),
            "finite numbers of at least 0; got other values for predicted_positives",
        ),
        (
            changed("false_discovery_sum", lambda a: a * np.nan),
            "finite numbers of at least 0; got other values for false_discovery_sum",
        ),
        (
            changed("false_negative_sum", lambda a: -a),
            "finite numbers of at least 0; got other values for false_negative_sum",
        ),
        (changed("images", lambda a: a + 0.5), "images .* one whole number"),
        (changed("true_positives", lambda a: a[:2]), "one value for each of 163 thresholds"),
        (
            changed("predicted_positives", lambda a: a[0]),
            "one value for each of 163 thresholds",
        ),
        (
            changed("predicted_positives", lambda a: np.float64(a.sum())),
            "one value for each of 163 thresholds",
        ),
        (changed("thresholds", lambda a: a[::-1]), "do not increase from 0 to 1"),
        (
            changed("predicted_positives", lambda a: a[:, ::-1]),
            "more labels are predicted at a higher threshold",
        ),
        (changed("predicted_positives", lambda a: a + 1), "a label is predicted at threshold 1"),
        (
            changed("true_positives", lambda a: 2 * a),
            "more labels are correct, or wrong, than are predicted",
        ),
        (
            changed("false_discovery_sum", lambda a: 5 * a),
            "more labels are correct, or wrong, than are predicted",
        ),
        (
            changed("false_negative_sum", lambda a: 5 * a),
            "more labels are missed than are positive",
        ),
        (changed("images", lambda a: a - 3), "numbers of images are inconsistent"),
    ],
)
def test_a_damaged_record_is_refused(record, damage, match):
    state = dict(record.state())
    damage(state)
    with pytest.raises(DataError, match=f"(?i){match}"):
        ValidationRecord.restore(state)
