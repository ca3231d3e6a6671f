import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from surelabel.calibration import estimate_label_shift
from surelabel.errors import ConfigError, InputError
from surelabel.metrics import ece, log_loss_of_logits

OLD = np.array([0.3, 0.1, 0.05, 0.5])
NEW = np.array([0.05, 0.4, 0.05, 0.9])


def new_images(n, share, seed=0):
    """Images whose logits are calibrated for ``OLD`` while labels come with ``share``."""
    rng = np.random.default_rng(seed)
    targets = rng.random((n, 4)) < share
    evidence = rng.normal(np.where(targets, 2.0, -2.0), 2.0)  # log-likelihood ratio N(±2, 2)
    return evidence + logit(OLD), targets.astype(float)


def test_finds_how_common_the_labels_in_new_images_are():
    logits, targets = new_images(20000, NEW)
    found = estimate_label_shift(logits, OLD)
    assert found.converged
    np.testing.assert_allclose(found.priors, targets.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(found.logit_shift, logit(NEW) - logit(OLD), atol=0.2)


def test_calibration_error_and_log_loss_fall():
    logits, targets = new_images(5000, NEW)
    moved = estimate_label_shift(logits, OLD).logits(logits)
    assert ece(expit(moved), targets) < 0.25 * ece(expit(logits), targets)
    assert log_loss_of_logits(moved, targets) < log_loss_of_logits(logits, targets) - 0.05


def test_where_nothing_changed_nothing_moves():
    logits, _ = new_images(20000, OLD)
    found = estimate_label_shift(logits, OLD)
    np.testing.assert_allclose(found.priors, OLD, atol=0.015)
    np.testing.assert_allclose(found.logit_shift, 0, atol=0.15)


def test_is_where_the_penalized_likelihood_is_largest():
    logits, _ = new_images(200, NEW)
    found = estimate_label_shift(logits, OLD, pseudo_count=5)
    for label in range(4):
        p, old = expit(logits[:, label]), OLD[label]

        def unlikely(q, p=p, old=old):
            pull = 5 * old * np.log(q) + 5 * (1 - old) * np.log(1 - q)
            return -np.log(q / old * p + (1 - q) / (1 - old) * (1 - p)).sum() - pull

        best = minimize_scalar(unlikely, bounds=(1e-6, 1 - 1e-6), options={"xatol": 1e-9})
        assert found.priors[label] == pytest.approx(best.x, abs=1e-5)


def test_one_step_is_the_mean_probability():
    logits, _ = new_images(50, NEW)
    found = estimate_label_shift(logits, OLD, pseudo_count=2, steps=1)
    np.testing.assert_allclose(found.priors, (expit(logits).sum(axis=0) + 2 * OLD) / 52)
    assert found.steps == 1
    assert not found.converged


def test_few_images_move_little():
    few = np.abs(estimate_label_shift(new_images(3, NEW)[0], OLD).logit_shift)
    assert (few < 1).all()
    assert (
        np.abs(estimate_label_shift(new_images(20000, NEW)[0], OLD).logit_shift)[[0, 1, 3]].min()
        > 1.5
    )


def test_a_label_that_nothing_seems_to_have_stays_possible():
    found = estimate_label_shift(np.full((1000, 1), -40.0), [0.2])
    assert found.priors[0] == pytest.approx(10 * 0.2 / 1010, rel=1e-3)
    assert found.converged


def test_every_label_is_by_itself():
    logits, _ = new_images(500, NEW)
    alone = estimate_label_shift(logits[:, [1]], OLD[[1]])
    together = estimate_label_shift(logits, OLD)
    np.testing.assert_allclose(alone.logit_shift, together.logit_shift[[1]])


@pytest.mark.parametrize("wrong", [0.0, 1.0, np.nan, -0.1])
def test_the_old_share_must_lie_inside_zero_and_one(wrong):
    with pytest.raises(InputError, match=r"prior must be in \(0, 1\); got .* for label 1"):
        estimate_label_shift(np.zeros((5, 2)), [0.5, wrong])


def test_there_must_be_one_old_share_a_label_and_the_same_labels_later():
    with pytest.raises(InputError, match=r"prior must have shape \(2,\), .* got \(3,\)"):
        estimate_label_shift(np.zeros((5, 2)), [0.5, 0.5, 0.5])
    with pytest.raises(InputError, match="the 2 labels"):
        estimate_label_shift(np.zeros((5, 2)), [0.5, 0.5]).logits(np.zeros((5, 3)))


@pytest.mark.parametrize("setting", [{"pseudo_count": 0.0}, {"steps": 0}, {"steps": 1.5}])
def test_settings_must_be_in_their_range(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        estimate_label_shift(np.zeros((5, 1)), [0.5], **setting)


def test_no_image_is_refused():
    with pytest.raises(InputError, match="at least one image"):
        estimate_label_shift(np.zeros((0, 1)), [0.5])
