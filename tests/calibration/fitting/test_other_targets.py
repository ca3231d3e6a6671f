import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from surelabel.calibration import logits_given_other_targets
from surelabel.errors import InputError
from surelabel.metrics import log_loss_of_logits


def sampled(n=400, *, dependent, seed=0):
    random = np.random.default_rng(seed)
    logits = random.normal(size=(n, 3))
    targets = (random.random((n, 3)) < expit(logits)).astype(float)
    if dependent:
        targets[:, 1] = targets[:, 0]
    return logits, targets


def test_other_targets_of_an_image_reduce_the_log_loss_of_dependent_labels():
    logits, targets = sampled(dependent=True)
    updated = logits_given_other_targets(logits, targets)
    before, after = (log_loss_of_logits(z[:, :2], targets[:, :2]) for z in (logits, updated))
    assert after < before / 2


def test_the_log_odds_of_a_target_do_not_depend_on_it():
    logits, targets = sampled(dependent=True)
    changed = targets.copy()
    changed[7, 2] = 1 - changed[7, 2]
    one, other = (logits_given_other_targets(logits, y) for y in (targets, changed))
    assert abs(one[7, 2] - other[7, 2]) < 1e-9
    assert abs(one[7, 0] - other[7, 0]) > 1e-3


def test_scores_that_explain_all_targets_are_not_changed():
    logits = np.tile([[12.0, -12.0], [-12.0, 12.0]], (30, 1))
    np.testing.assert_array_equal(logits_given_other_targets(logits, logits > 0), logits)


def test_one_label_has_no_other_targets():
    logits, targets = sampled(dependent=False)
    np.testing.assert_array_equal(
        logits_given_other_targets(logits[:, :1], targets[:, :1]), logits[:, :1]
    )


def test_a_whole_number_of_folds_may_be_a_float():
    data = sampled(n=40, dependent=True)
    np.testing.assert_array_equal(
        logits_given_other_targets(*data, folds=3.0), logits_given_other_targets(*data, folds=3)
    )


def test_unknown_targets_have_no_influence():
    logits, targets = sampled(dependent=True)
    known = np.ones_like(targets, dtype=bool)
    known[::3, 2] = False
    one, other = (
        logits_given_other_targets(logits, np.where(known, targets, value), known)
        for value in (0.0, np.nan)
    )
    np.testing.assert_array_equal(one, other)


def test_weights_are_those_of_logistic_regression_of_scikit_learn():
    from surelabel.calibration.fitting.other_targets import _fit_weights

    logits, targets = sampled(dependent=False)
    residuals = targets - expit(logits)
    known = np.ones_like(targets, dtype=bool)
    zeros, start = np.zeros_like(logits), np.zeros((4, 3))
    weights = _fit_weights(zeros, residuals, targets, known, 2.0, start)
    columns = np.c_[np.ones(len(logits)), residuals[:, 1:]]  # the intercept is penalized too
    peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8).fit(columns, targets[:, 0])
    np.testing.assert_allclose(weights[[0, 2, 3], 0], peer.coef_[0], atol=2e-3)


def test_too_few_images_for_the_folds_are_refused():
    with pytest.raises(InputError, match="folds must be at most the number of images"):
        logits_given_other_targets(np.zeros((3, 2)), [[1, 0], [0, 1], [1, 1]])
