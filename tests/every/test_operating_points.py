"""What every operating point must do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
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
def test_a_threshold_is_one_exactly_where_the_goal_is_not_reached_unless_it_is_common(point):
    logits, targets = np.tile([3.0, 2.0], (500, 1)), np.tile([1.0, 0.0], (500, 1))
    found = point(record_validation(logits, targets), shrinkage=0.0)
    assert found.is_reached.tolist() == [True, False]
    if found.values[0] != found.values[1]:
        np.testing.assert_array_equal(found.values == 1, ~found.is_reached)
        assert not found.predict(np.ones((3, 2)))[:, ~found.is_reached].any()


@every
def test_where_no_label_has_a_positive_none_reaches_the_goal(point):
    wrong = record_validation(np.full((500, 2), 3.0), np.zeros((500, 2)))
    assert not point(wrong, shrinkage=0.0).is_reached.any()
    assert not point(wrong).is_reached.any()


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


@st.composite
def annotated_logits(draw):
    """Logits of a few images, with targets that are positive, negative, unknown or graded."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(2, 4)))
    logits = draw(npst.arrays(float, shape, elements=st.floats(-40, 40)))
    values = st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.3, np.nan])
    targets = draw(npst.arrays(float, shape, elements=values))
    targets[0, 0] = draw(st.sampled_from([0.0, 1.0]))  # at least one target is known
    return logits, targets


@every
@given(annotated_logits(), st.sampled_from([0.0, 0.5, 10.0, 1e3]))
def test_a_label_that_is_reached_has_positives_a_recall_and_an_image(point, data, shrinkage):
    logits, targets = data
    found = point(record_validation(logits, targets), shrinkage=shrinkage)
    reached, known = found.is_reached, ~np.isnan(targets)
    assert (found.values[reached] < 1).all()
    assert (found.recall[reached] > 0).all()
    assert (np.nansum(targets, axis=0)[reached] > 0).all()
    assert (found.predict(expit(logits)) & known).any(axis=0)[reached].all()


@every
@given(annotated_logits(), st.sampled_from([0.0, 0.5, 10.0, 1e3]))
def test_a_label_that_is_not_reached_is_never_predicted_unless_the_threshold_is_common(
    point, data, shrinkage
):
    found = point(record_validation(*data), shrinkage=shrinkage)
    is_common = (found.values == found.values[0]).all()
    assert is_common or (found.values[~found.is_reached] == 1).all()


@every
@given(annotated_logits(), st.sampled_from([0.0, 10.0]))
def test_probabilities_as_targets_count_as_positives_where_no_label_is_known(
    point, data, shrinkage
):
    logits, _ = data
    found = point(record_validation(logits, expit(logits)), shrinkage=shrinkage)
    is_predicted = found.predict(expit(logits)).any(axis=0)
    assert (found.support > 0).all()
    assert is_predicted[found.is_reached].all()
    assert (found.recall[found.is_reached] > 0).all()


@every
def test_every_label_of_probable_images_reaches_the_goal_without_any_label(point, data):
    logits, _ = data
    assert point(record_validation(logits, expit(logits))).is_reached.all()


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
