import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from surelabel.calibration import Isotonic, Platt, Vector, cross_fitted_logits
from surelabel.errors import ConfigError, InputError
from surelabel.metrics import log_loss_of_logits


class Seen:
    """Remembers what it was fitted on; its logits say whether an image was among that."""

    def fit(self, logits, targets, known=None):
        self.rows, self.present = set(logits[:, 0]), np.nansum(targets, axis=0)
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


def test_no_image_is_calibrated_by_what_saw_it(labelled):
    logits, targets = labelled
    assert not cross_fitted_logits(Seen, logits, targets).any()
    assert len(fits) == 5
    assert sorted(203 - len(fit.rows) for fit in fits) == [40, 40, 41, 41, 41]


def test_rare_labels_are_in_all_parts_as_evenly_as_can_be():
    rng = np.random.default_rng(1)
    targets = (rng.random((300, 3)) < [0.4, 0.1, 0.0]).astype(float)
    targets[rng.choice(300, 7, replace=False), 2] = 1
    cross_fitted_logits(Seen, rng.normal(size=(300, 3)), targets, folds=3)
    inside = np.array([targets.sum(axis=0) - fit.present for fit in fits])
    assert sorted(inside[:, 2]) == [2, 2, 3]
    assert (np.ptp(inside, axis=0) <= 3).all()


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


@pytest.mark.parametrize("folds", [1, 0, 2.5])
def test_folds_must_be_a_whole_number_of_at_least_two(labelled, folds):
    with pytest.raises(ConfigError, match="folds must be a whole number of at least 2"):
        cross_fitted_logits(Platt, *labelled, folds=folds)
