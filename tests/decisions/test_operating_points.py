import numpy as np
import pytest
from scipy.special import expit, logit

from surelabel.decisions import (
    cost_operating_point,
    expected_count_operating_point,
    f1_operating_point,
    precision_operating_point,
    recall_operating_point,
    record_validation,
)
from surelabel.errors import ConfigError

PREVALENCE = np.geomspace(0.01, 0.3, 12)
SKILL = np.tile([1.5, 2.5, 3.5], 4)
COMMON = PREVALENCE > 0.03


def drawn(seed, images):
    """Log-odds that are calibrated by construction, and what is true."""
    rng = np.random.default_rng(seed)
    targets = rng.random((images, 12)) < PREVALENCE
    noise = rng.normal(size=targets.shape) + SKILL * targets
    return SKILL * noise - SKILL**2 / 2 + logit(PREVALENCE), targets.astype(float)


@pytest.fixture(scope="module")
def large():
    return record_validation(*drawn(0, 30_000))


@pytest.fixture(scope="module")
def fresh():
    logits, targets = drawn(1, 30_000)
    return expit(logits), targets.astype(bool)


def measured(thresholds, fresh):
    """Precision and recall of the thresholds on images not seen before."""
    probabilities, targets = fresh
    shown = thresholds.predict(probabilities)
    right = (shown & targets).sum(axis=0)
    return right / np.maximum(shown.sum(axis=0), 1), right / targets.sum(axis=0)


def test_of_calibrated_probabilities_the_best_threshold_is_half_the_best_f1(large):
    found = f1_operating_point(large)
    best = 2 * found.precision * found.recall / (found.precision + found.recall)
    np.testing.assert_allclose(found.values, best / 2, atol=0.07)


def test_no_threshold_has_a_better_f1(large, fresh):
    ours = f1_operating_point(large)
    p, r = measured(ours, fresh)
    ours_f1 = 2 * p * r / (p + r)
    probabilities, targets = fresh
    for threshold in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7):
        shown = probabilities >= threshold
        other = 2 * (shown & targets).sum(axis=0) / (shown.sum(axis=0) + targets.sum(axis=0))
        assert (other < ours_f1 + 0.015).all()


@pytest.mark.parametrize("goal", [0.6, 0.8])
def test_precision_is_reached_on_fresh_images_and_no_recall_is_given_away(large, fresh, goal):
    found = precision_operating_point(large, at_least=goal)
    p, r = measured(found, fresh)
    is_probable = large.predicted_positives[:, np.searchsorted(large.thresholds, goal)] > 0
    np.testing.assert_array_equal(found.is_reached, is_probable)
    assert is_probable[COMMON].all()
    np.testing.assert_allclose(p[COMMON & (SKILL > 2)], goal, atol=0.04)
    np.testing.assert_allclose(r[COMMON], found.recall[COMMON], atol=0.04)


@pytest.mark.parametrize("goal", [0.5, 0.9])
def test_recall_is_reached_on_fresh_images(large, fresh, goal):
    found = recall_operating_point(large, at_least=goal)
    p, r = measured(found, fresh)
    np.testing.assert_allclose(r[COMMON], goal, atol=0.04)
    np.testing.assert_allclose(p[COMMON], found.precision[COMMON], atol=0.04)


@pytest.mark.parametrize("miss_cost", [0.2, 1.0, 5.0, 50.0])
def test_no_other_threshold_costs_less(large, fresh, miss_cost):
    probabilities, targets = fresh
    ours = cost_operating_point(large, miss_cost=miss_cost)

    def costs(shown):
        return (miss_cost * (targets & ~shown) + (shown & ~targets)).sum()

    least = costs(ours.predict(probabilities))
    assert all(least < 1.01 * costs(probabilities >= t) for t in (0.01, 0.1, 0.3, 0.5, 0.8, 0.9))
    np.testing.assert_allclose(ours.values, 1 / (1 + miss_cost))


def test_expected_precision_and_recall_are_calibrated_for_rare_labels_of_few_images(fresh):
    """Own counts alone promise much more recall than there is; mixed they are about right."""
    alone, mixed = [], []
    for seed in range(20):
        record = record_validation(*drawn(100 + seed, 150))
        for weight, errors in ((0.0, alone), (10.0, mixed)):
            found = recall_operating_point(record, at_least=0.8, shrinkage=weight)
            errors.append((found.recall - measured(found, fresh)[1])[:6])
    assert np.nanmean(alone) > 0.1
    assert abs(np.nanmean(mixed)) < 0.05
    assert np.nanmean(np.abs(mixed)) < np.nanmean(np.abs(alone)) / 1.5


def test_precision_of_few_images_is_no_worse_than_promised(fresh):
    found = [
        precision_operating_point(record_validation(*drawn(200 + seed, 150)), at_least=0.7)
        for seed in range(20)
    ]
    achieved = np.concatenate([measured(f, fresh)[0][f.is_reached] for f in found])
    promised = np.concatenate([f.precision[f.is_reached] for f in found])
    assert len(achieved) > 100
    assert achieved.mean() > promised.mean() - 0.02


def test_a_precision_that_the_record_contradicts_is_not_reached_and_never_shown():
    logits = np.column_stack([np.full(400, 4.0), np.full(400, -2.0)])
    targets = np.column_stack([np.arange(400) % 2, np.zeros(400)])
    found = precision_operating_point(record_validation(logits, targets), at_least=0.9)
    assert found.is_reached.tolist() == [False, False]
    assert found.values.tolist() == [1, 1]
    assert np.isnan(found.precision).all()
    assert not found.predict([[0.99, 0.99]]).any()


def test_one_label_that_fails_does_not_stop_the_others():
    rng = np.random.default_rng(0)
    logits = np.column_stack([rng.normal(0, 3, 400) for _ in range(9)] + [np.full(400, 7.9)])
    targets = (rng.random(logits.shape) < expit(logits)).astype(float)
    targets[:, 9] = 0
    found = precision_operating_point(record_validation(logits, targets), at_least=0.6)
    assert found.is_reached[:9].all()
    assert found.values[9] > 0.9


def test_a_precision_that_only_probabilities_above_all_of_the_record_have_is_not_reached():
    """The precision of the next prediction would be sufficient, but no image has been predicted."""
    logits = np.column_stack([np.full(400, -2.0), np.linspace(-6, 6, 400)])
    targets = np.random.default_rng(0).random(logits.shape) < expit(logits)
    found = precision_operating_point(record_validation(logits, targets), at_least=0.9)
    assert found.is_reached.tolist() == [False, True]
    assert found.support[0] > 20
    assert not found.predict([[0.99, 0.99]])[0, 0]


@pytest.mark.parametrize(
    "entry", [f1_operating_point, precision_operating_point, recall_operating_point]
)
def test_a_label_without_known_positives_is_never_predicted(entry):
    logits, targets = drawn(0, 300)
    targets[:, 3], targets[:, 7] = 0, np.nan
    found = entry(record_validation(logits, targets))
    assert (found.support[[3, 7]] == 0).all()
    assert not found.is_reached[[3, 7]].any()
    assert found.values[[3, 7]].tolist() == [1, 1]
    assert found.is_reached[[5, 8, 11]].all()


def test_a_common_threshold_is_the_same_for_labels_that_are_not_reached():
    logits, targets = drawn(0, 300)
    logits[:, 0], targets[:, 3], targets[:, 7] = -6, 0, np.nan
    record = record_validation(logits, targets)
    for found in (cost_operating_point(record), expected_count_operating_point(record)):
        assert np.flatnonzero(~found.is_reached).tolist() == [0, 3, 7]
        assert (found.values == found.values[0]).all()
        assert 0 < found.values[0] < 1


def test_a_label_reaches_a_cost_between_two_thresholds_only_if_an_image_is_surely_predicted():
    record = record_validation([[0.01, 0.2], [-3.0, -3.0]], [[1, 1], [0, 0]])
    found = cost_operating_point(record, miss_cost=float(np.exp(-0.05)))  # log-odds of 0.05
    assert found.predict(expit([[0.01, 0.2]])).tolist() == [[False, True]]
    assert found.is_reached.tolist() == [False, True]


def test_without_shrinkage_a_label_without_positives_has_no_recall_to_reach():
    record = record_validation([[1.0, 1.0], [-1.0, -1.0]], [[1, 0], [0, 0]])
    for entry in (f1_operating_point, recall_operating_point):
        found = entry(record, shrinkage=0.0)
        assert found.is_reached.tolist() == [True, False]
        assert np.isnan(found.recall[1])
        assert found.support.tolist() == [1, 0]


@pytest.mark.parametrize("entry", [precision_operating_point, recall_operating_point])
@pytest.mark.parametrize("goal", [0.0, 1.0, -1.0, 90.0])
def test_a_goal_is_a_share(large, entry, goal):
    with pytest.raises(ConfigError, match=f"at_least must be above 0 .* got {goal}"):
        entry(large, at_least=goal)


@pytest.mark.parametrize("miss_cost", [0.0, -1.0, np.inf, np.nan])
def test_a_cost_is_finite_and_above_zero(large, miss_cost):
    with pytest.raises(
        ConfigError, match=f"miss_cost must be a finite number above 0; got {miss_cost}"
    ):
        cost_operating_point(large, miss_cost=miss_cost)


def test_as_many_labels_are_shown_as_there_are(large, fresh):
    found = expected_count_operating_point(large)
    probabilities, targets = fresh
    assert len(set(found.values)) == 1
    assert found.predict(probabilities).sum() == pytest.approx(targets.sum(), rel=0.05)


def test_as_many_as_the_probabilities_promise_are_shown_where_no_label_is_known(fresh):
    logits, _ = drawn(3, 30_000)
    promised = record_validation(logits, expit(logits))
    shown = expected_count_operating_point(promised).predict(fresh[0])
    assert shown.sum() == pytest.approx(fresh[1].sum(), rel=0.05)


def test_of_two_thresholds_as_near_the_higher_shows_fewer():
    record = record_validation([[-1.0], [0.0], [1.0], [2.0]], [[0], [0], [1], [1]])
    found = expected_count_operating_point(record)
    assert found.predict([[expit(0.99)], [expit(1.0)]]).tolist() == [[False], [True]]


def test_where_nothing_is_present_as_many_is_never_shown():
    found = expected_count_operating_point(
        record_validation([[1.0, 0.0], [-1.0, 2.0]], [[0, 0], [0, 0]])
    )
    assert not found.is_reached.any()
    assert found.values.tolist() == [1, 1]
