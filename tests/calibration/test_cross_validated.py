import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration import (
    Beta,
    CrossValidated,
    Hierarchical,
    SelectsCalibrator,
    Vector,
    cross_fitted_logits,
)
from surelabel.errors import ConfigError, DataError
from surelabel.metrics import log_loss_of_logits


def labels(n, levels, seed=0):
    rng = np.random.default_rng(seed)
    truth = 2 * rng.normal(size=(n, len(levels))) - 1
    y = (rng.random(truth.shape) < expit(truth)).astype(float)
    return truth - levels, y


def test_the_lowest_log_loss_of_the_folds_is_selected_and_fitted_on_all_images():
    x, y = labels(80, [2.0, 0.0, -2.0, 1.0])
    found = CrossValidated(folds=4).fit(x, y)
    for name, entry in (("beta", Beta), ("vector", Vector), ("hierarchical", Hierarchical)):
        logits = cross_fitted_logits(entry, x, y, folds=4)
        np.testing.assert_allclose(found.log_losses_[name], log_loss_of_logits(logits, y))
    assert found.selected_ == min(found.log_losses_, key=found.log_losses_.get) != "beta"
    entry = {"vector": Vector, "hierarchical": Hierarchical}[found.selected_]
    np.testing.assert_array_equal(found.logits(x), entry().fit(x, y).logits(x))


def test_labels_that_are_alike_select_the_shared_calibrator():
    found = CrossValidated().fit(*labels(100, np.zeros(10)))
    assert found.selected_ == "beta"
    assert isinstance(found.shared_calibrator(), Beta)


def test_new_labels_use_the_shared_part_of_the_selected_calibrator():
    x, y = labels(100, [3.0, 0.0, -3.0])
    found = CrossValidated().fit(x, y)
    shared = Hierarchical().fit(x, y).shared_calibrator()
    assert found.selected_ == "hierarchical"
    np.testing.assert_array_equal(found.shared_calibrator().logits(x), shared.logits(x))


@pytest.mark.parametrize(("n", "is_selected"), [(19, False), (20, True)])
def test_images_with_known_targets_count(n, is_selected):
    x, y = labels(40, [2.0, -2.0])
    y[n:] = np.nan
    found = CrossValidated().fit(x, y)
    assert bool(found.log_losses_) == is_selected
    if not is_selected:
        np.testing.assert_array_equal(found.logits(x), Beta().fit(x, y).logits(x))


def test_more_folds_than_images_leave_one_image_out():
    x, y = labels(22, [2.0, -2.0])
    found = CrossValidated(folds=1000).fit(x, y)
    logits = cross_fitted_logits(Beta, x, y, folds=22)
    np.testing.assert_allclose(found.log_losses_["beta"], log_loss_of_logits(logits, y))


def test_without_labels_there_is_a_shared_calibrator():
    assert isinstance(CrossValidated(), SelectsCalibrator)
    assert CrossValidated().select_shared().make_calibrator is Beta


@pytest.mark.parametrize("folds", [1, 2.5])
def test_there_are_at_least_two_whole_folds(folds):
    with pytest.raises(ConfigError, match="folds must be a whole number of at least 2"):
        CrossValidated(folds=folds)


@pytest.mark.parametrize(
    "change",
    [{"selected": "platt"}, {"n_labels": 0}, {"log_losses": {"beta": "low"}}, {"state": None}],
)
def test_a_state_of_another_selection_is_refused(change):
    state = CrossValidated().fit(*labels(30, [2.0, -2.0])).state()
    with pytest.raises(DataError, match="selected is one of beta, vector, hierarchical"):
        CrossValidated().restore(state | change)
