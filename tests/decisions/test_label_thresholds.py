import numpy as np
import pytest
from scipy.special import expit

from surelabel.decisions import Thresholds, record_validation
from surelabel.decisions.label_thresholds import precision_recall_at_label_thresholds
from surelabel.errors import ConfigError, InputError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2, size=(40, 3))
    return logits, (rng.random(logits.shape) < expit(1.5 * logits - 1)).astype(float)


@pytest.mark.parametrize("weight", [0.0, 3.0, 10.0])
def test_curves_equal_the_formula_by_hand(data, weight):
    logits, targets = data
    p = expit(logits)
    record = record_validation(logits, targets)
    precision, recall = precision_recall_at_label_thresholds(record, weight)
    for place in range(0, 140, 7):
        t = record.thresholds[place]
        every = p >= t
        lift = min(targets[every].sum() / p[every].sum(), 1) if every.any() else np.nan
        for c in range(3):
            show = every[:, c]
            promise = lift * (p[show, c].sum() + t) / (show.sum() + 1)
            right = targets[show, c].sum()
            expected = (right + lift * t + weight * promise) / (show.sum() + 1 + weight)
            np.testing.assert_allclose(precision[c, place], expected)
            kept = p[show, c].sum() / p[:, c].sum()
            expected = (right + weight * kept) / (targets[:, c].sum() + weight)
            np.testing.assert_allclose(recall[c, place], expected)


def test_much_shrinkage_leaves_what_the_probabilities_promise():
    logits = np.array([[2.0, -1.0], [1.0, 0.5]])
    record = record_validation(logits, expit(logits))
    _, recall = precision_recall_at_label_thresholds(record, 1e9)
    place = np.searchsorted(record.thresholds, 0.7)
    expected = (expit(2) + expit(1)) / (expit(2) + expit(1)), 0
    np.testing.assert_allclose(recall[:, place], expected, atol=1e-6)


def test_a_label_of_which_nothing_is_known_follows_all_others(data):
    logits, targets = data
    targets = targets.copy()
    targets[:, 2] = np.nan
    record = record_validation(logits, targets)
    precision, recall = precision_recall_at_label_thresholds(record, 10.0)
    expected = record.true_positives.sum(axis=0) / record.true_positives.sum(axis=0)[0]
    promised = (
        record.expected_true_positives.sum(axis=0) / record.expected_true_positives.sum(axis=0)[0]
    )
    np.testing.assert_allclose(recall[2], promised)
    assert np.abs(recall[2] - expected).max() < 0.2
    assert np.isfinite(precision[2, :100]).all()


@pytest.mark.parametrize("weight", [-1.0, np.inf, np.nan])
def test_shrinkage_must_be_finite_and_not_negative(data, weight):
    with pytest.raises(ConfigError, match="shrinkage must be a finite number of at least 0"):
        precision_recall_at_label_thresholds(record_validation(*data), weight)


@pytest.fixture
def thresholds():
    nan, two = np.full(3, np.nan), np.full(3, 2.0)
    return Thresholds(np.array([0.0, 0.5, 1.0]), nan, nan, np.array([True, True, False]), two)


def test_shows_from_the_threshold_on_and_never_at_one(thresholds):
    found = thresholds.predict([[0.0, 0.5, 1.0], [1.0, 0.4, 0.9]])
    assert found.tolist() == [[True, True, False], [True, False, False]]


def test_probabilities_of_other_labels_are_refused(thresholds):
    with pytest.raises(InputError, match=r"one column per label, 3; got shape \(1, 2\)"):
        thresholds.predict([[0.1, 0.2]])
