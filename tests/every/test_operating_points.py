"""What every operating point must do."""

import numpy as np
import pytest
from scipy.special import expit

from surelabel.decisions import OPERATING_POINTS, record_validation
from surelabel.errors import ConfigError

every = pytest.mark.parametrize("point", OPERATING_POINTS.values(), ids=OPERATING_POINTS)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2.5, size=(300, 4)) - [0, 1, 2, 3]
    return logits, (rng.random(logits.shape) < expit(logits)).astype(float)


@pytest.fixture
def record(data):
    return record_validation(*data)


@every
def test_one_threshold_a_label_in_zero_to_one_with_what_to_expect(point, record):
    found = point(record)
    for values in (found.values, found.precision, found.recall, found.is_reached, found.support):
        assert values.shape == (4,)
    for share in (found.values, found.precision, found.recall):
        assert ((share >= 0) & (share <= 1))[found.is_reached].all()
    assert found.is_reached.dtype == bool
    np.testing.assert_array_equal(found.support, record.support)


@every
def test_a_threshold_is_one_exactly_where_the_goal_is_not_reached(point):
    wrong = record_validation(np.full((500, 2), 3.0), np.zeros((500, 2)))
    found = point(wrong, shrinkage=0.0)
    np.testing.assert_array_equal(found.values == 1, ~found.is_reached)
    assert not found.predict(np.ones((3, 2)))[:, ~found.is_reached].any()


@every
def test_order_of_images_does_not_matter(point, data, record):
    turned = point(record_validation(data[0][::-1], data[1][::-1]))
    np.testing.assert_allclose(turned.values, point(record).values)


@every
def test_order_of_labels_only_moves_the_answers(point, data, record):
    turned = point(record_validation(data[0][:, ::-1], data[1][:, ::-1]))
    np.testing.assert_allclose(turned.values[::-1], point(record).values)


@every
def test_unknown_targets_have_no_influence(point, data):
    logits, targets = data
    known = np.random.default_rng(1).random(targets.shape) < 0.5
    expected = point(record_validation(logits, targets, known))
    for changed in (np.where(known, targets, 1 - targets), np.where(known, targets, np.nan)):
        found = point(record_validation(logits, changed, known))
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.precision, expected.precision)


@every
def test_what_is_expected_is_about_what_happens(point, data, record):
    found = point(record)
    shown = found.predict(expit(data[0]))
    right = (shown * data[1]).sum(axis=0)
    np.testing.assert_allclose(found.recall, right / data[1].sum(axis=0), atol=0.1)
    np.testing.assert_allclose(found.precision, right / np.maximum(shown.sum(axis=0), 1), atol=0.15)


@every
def test_one_image_with_one_label_is_enough(point):
    found = point(record_validation([[4.0]], [[1.0]]))
    assert found.is_reached.all()
    assert np.isfinite([found.values, found.precision, found.recall]).all()


@every
def test_graded_targets_count_by_their_value(point, data):
    logits, _ = data
    graded = point(record_validation(logits, expit(logits)))
    drawn = point(record_validation(*data))
    np.testing.assert_allclose(logits_of(graded), logits_of(drawn), atol=1.2)


def logits_of(thresholds):
    return np.log(thresholds.values / (1 - thresholds.values))


@every
def test_the_record_is_left_alone(point, record):
    before = {name: array.copy() for name, array in record.state().items()}
    point(record)
    for name, array in record.state().items():
        np.testing.assert_array_equal(array, before[name])


@every
def test_negative_shrinkage_is_refused(point, record):
    with pytest.raises(ConfigError, match=r"shrinkage .* at least 0; got -1"):
        point(record, shrinkage=-1)
