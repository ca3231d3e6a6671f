import tracemalloc

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from surelabel.calibration import (
    CALIBRATORS,
    Isotonic,
    Platt,
    Vector,
    assign_folds,
    calibrator_for_images,
    cross_fitted_logits,
)
from surelabel.errors import ConfigError, InputError
from surelabel.mapped_arrays import is_mapped_array, to_mapped_array
from surelabel.metrics import log_loss_of_logits


class Seen:
    """Remembers what it was fitted on; its logits say whether an image was among that."""

    def fit(self, logits, targets, known=None):
        self.rows = set(logits[:, 0])
        fits.append(self)
        return self

    def logits(self, logits):
        return np.array([[float(row in self.rows)] * logits.shape[1] for row in logits[:, 0]])


fits = []


@pytest.fixture(autouse=True)
def forget():
    fits.clear()


@pytest.fixture
def labelled():
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(203, 4)) - [0.0, 2.0, 4.0, 5.0]
    return truth, (rng.random(truth.shape) < expit(truth)).astype(float)


every = pytest.mark.parametrize("calibrator", CALIBRATORS.values(), ids=CALIBRATORS.keys())


def test_no_image_is_calibrated_by_what_saw_it(labelled):
    logits, targets = labelled
    assert not cross_fitted_logits(Seen, logits, targets).any()
    assert len(fits) == 5
    assert sorted(203 - len(fit.rows) for fit in fits) == [40, 40, 41, 41, 41]


@every
def test_the_own_targets_of_an_image_have_no_influence_on_its_logits(calibrator):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(12, 2))
    for targets in (rng.random((12, 2)) < expit(2 * logits), logits > np.sort(logits, axis=0)[-3]):
        before = cross_fitted_logits(calibrator, logits, targets, vectors=logits, folds=4)
        n_changed = 0
        for row in range(12):
            flipped = targets.copy()
            flipped[row] = ~flipped[row]
            after = cross_fitted_logits(calibrator, logits, flipped, vectors=logits, folds=4)
            np.testing.assert_array_equal(after[row], before[row])
            n_changed += np.count_nonzero(after != before)
        assert n_changed > 0


def normal_grid(level):
    """True log-odds of standard deviation 2, and the weights of an integral over them."""
    steps = np.linspace(-8, 8, 161)
    return level + 2 * steps[:, None] * np.ones(10), norm.pdf(steps) / norm.pdf(steps).sum()


def test_the_log_loss_of_the_record_is_on_average_that_of_the_calibrators_of_the_folds():
    """With folds that were stratified by label, the bias was -0.009."""
    grid, weights = normal_grid(level=-2)
    made = []

    def make():
        made.append(Vector())
        return made[-1]

    def expected_log_loss(calibrator):
        z = calibrator.logits(grid)
        return (weights @ (np.logaddexp(0, z) - expit(grid) * z)).mean()

    entropy = (weights @ (np.logaddexp(0, grid) - expit(grid) * grid)).mean()
    errors = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        truth = 2 * rng.normal(size=(50, 10)) - 2
        targets = (rng.random(truth.shape) < expit(truth)).astype(float)
        made.clear()
        shown = log_loss_of_logits(cross_fitted_logits(make, truth, targets, seed=seed), targets)
        luck = log_loss_of_logits(truth, targets) - entropy  # a control variate of mean 0
        errors.append(shown - luck - np.mean([expected_log_loss(fitted) for fitted in made]))
    standard_error = np.std(errors, ddof=1) / len(errors) ** 0.5
    assert abs(np.mean(errors)) < 4 * standard_error < 0.006


@given(
    known=hnp.arrays(bool, st.tuples(st.integers(2, 40), st.integers(1, 3))),
    folds=st.integers(2, 6),
)
@settings(max_examples=25, deadline=None)
def test_folds_are_of_equal_size_over_all_and_over_the_labelled_images(known, folds):
    assume(known.any(axis=1).sum() >= folds)
    fold = assign_folds(known, folds, np.random.default_rng(0))
    for chosen in (fold, fold[known.any(axis=1)]):
        assert np.ptp(np.bincount(chosen, minlength=folds)) <= 1


def test_every_pair_of_images_is_equally_often_in_one_fold():
    known = np.ones((5, 1), dtype=bool)
    deals = [assign_folds(known, 2, np.random.default_rng(seed)) for seed in range(1000)]
    same = np.mean([fold[:, None] == fold for fold in deals], axis=0)
    pairs = same[np.triu_indices(5, 1)]  # of 10 pairs, 4 are inside a fold
    np.testing.assert_allclose(pairs, 0.4, atol=5 * (0.4 * 0.6 / 1000) ** 0.5)


@every
@pytest.mark.parametrize("rare", [1.0, 0.0])
def test_images_outside_which_there_is_one_class_get_its_smoothed_frequency(calibrator, rare):
    logits = np.random.default_rng(3).normal(size=(20, 2))
    targets = np.full((20, 2), 1 - rare)
    targets[7, 1] = rare
    targets[8, 0] = np.nan
    fold = assign_folds(~np.isnan(targets), 5, np.random.default_rng(0))
    others = np.count_nonzero(~np.isnan(targets[fold != fold[7]]))
    found = cross_fitted_logits(calibrator, logits, targets, vectors=logits)
    expected = -np.log(others + 1) if rare else np.log(others + 1)
    np.testing.assert_allclose(found[fold == fold[7]], expected)
    fitted = calibrator_for_images(calibrator(), logits, fold != 0)
    fitted = fitted.fit(logits[fold != 0], targets[fold != 0])
    fitted = calibrator_for_images(fitted, logits, fold == 0)
    assert fold[7] != 0
    np.testing.assert_array_equal(found[fold == 0], fitted.logits(logits[fold == 0]))


def test_one_class_in_all_images_is_an_error():
    with pytest.raises(InputError, match="got 0 positive among 20 known targets"):
        cross_fitted_logits(Platt, np.zeros((10, 2)), np.zeros((10, 2)))


def test_equals_scikit_learn_with_the_same_parts(labelled):
    logits, targets = labelled[0][:, :1], labelled[1][:, :1]
    parts = np.full(203, -1)
    cross_fitted_logits(Seen, logits, targets, folds=3)
    for k, fit in enumerate(fits):
        parts[[row not in fit.rows for row in logits[:, 0]]] = k
    found = expit(cross_fitted_logits(Platt, logits, targets, folds=3))
    splits = [(np.flatnonzero(parts != k), np.flatnonzero(parts == k)) for k in range(3)]
    oracle = LogisticRegression(C=np.inf)
    expected = cross_val_predict(
        oracle, logits, targets[:, 0], cv=splits, method="predict_proba", params=None
    )[:, 1]
    np.testing.assert_allclose(found[:, 0], expected, atol=0.02)  # scikit-learn smooths nothing


def test_shows_what_fitting_on_the_same_images_hides():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(60, 3))
    targets = (rng.random((60, 3)) < 0.5).astype(float)  # nothing to be learnt
    inside = log_loss_of_logits(
        Isotonic(pseudo_count=0.1).fit(logits, targets).logits(logits), targets
    )
    out_of_fold = log_loss_of_logits(
        cross_fitted_logits(lambda: Isotonic(pseudo_count=0.1), logits, targets), targets
    )
    assert inside < np.log(2) < out_of_fold


def test_images_of_which_nothing_is_known_are_calibrated_too(labelled):
    logits, targets = labelled[0], labelled[1].copy()
    targets[:190] = np.nan
    targets[190:, 0] = [0, 1] * 6 + [0]
    found = cross_fitted_logits(Vector, logits, targets)
    assert found.shape == logits.shape
    assert np.isfinite(found).all()
    cross_fitted_logits(Seen, logits, targets)
    known_rows = set(logits[190:, 0])
    assert all(2 <= len(known_rows - fit.rows) <= 3 for fit in fits)


def test_the_seed_deals_and_nothing_else(labelled):
    first = cross_fitted_logits(Platt, *labelled, seed=3)
    np.testing.assert_array_equal(first, cross_fitted_logits(Platt, *labelled, seed=3))
    assert (first != cross_fitted_logits(Platt, *labelled, seed=4)).any()


def test_there_must_be_as_many_labelled_images_as_folds(labelled):
    targets = labelled[1].copy()
    targets[3:] = np.nan
    with pytest.raises(InputError, match=r"got 5 folds and 3 such images\. Use fewer folds"):
        cross_fitted_logits(Platt, labelled[0], targets)


def test_a_whole_number_of_folds_may_be_a_float(labelled):
    np.testing.assert_array_equal(
        cross_fitted_logits(Platt, *labelled, folds=3.0),
        cross_fitted_logits(Platt, *labelled, folds=3),
    )


@pytest.mark.parametrize("folds", [1, 0, 2.5])
def test_folds_must_be_a_whole_number_of_at_least_two(labelled, folds):
    with pytest.raises(ConfigError, match="folds must be a whole number of at least 2"):
        cross_fitted_logits(Platt, *labelled, folds=folds)


@pytest.fixture(scope="module")
def mapped_data():
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(7000, 80)) - 2
    y = (rng.random(x.shape) < expit(x)).astype(float)
    return to_mapped_array(x), to_mapped_array(y), np.ones(x.shape, dtype=bool)


BLOCK_BYTES = 2**22  # of blocks of any number of images


@pytest.mark.parametrize(
    "name", ["beta", "hierarchical", "histogram", "isotonic", "isotonic_per_class", "platt"]
)
def test_a_fit_on_mapped_arrays_takes_at_most_40_bytes_per_element(mapped_data, name):
    assert is_mapped_array(mapped_data[0])
    tracemalloc.start()
    try:
        CALIBRATORS[name]().fit(*mapped_data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * mapped_data[0].size + BLOCK_BYTES


def test_a_cross_fit_on_mapped_arrays_takes_at_most_40_bytes_per_element(mapped_data):
    tracemalloc.start()
    try:
        cross_fitted_logits(CALIBRATORS["beta"], *mapped_data, folds=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * mapped_data[0].size + BLOCK_BYTES
