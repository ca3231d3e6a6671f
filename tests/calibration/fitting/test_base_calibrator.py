from inspect import signature

import numpy as np
import pytest

from surelabel.calibration import (
    Beta,
    Hierarchical,
    Histogram,
    Isotonic,
    IsotonicPerClass,
    Platt,
    Vector,
)
from surelabel.calibration.fitting.base_calibrator import BaseCalibrator
from surelabel.errors import ConfigError, NotFitted


def test_settings_can_be_read_and_changed():
    it = Histogram(bins=5)
    assert it.get_params() == {"bins": 5, "pseudo_count": 1.0}
    assert it.set_params(bins=7).get_params()["bins"] == 7


def test_an_unknown_setting_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match=r"Histogram has no setting bin\. Settings: bins, pseudo"):
        Histogram().set_params(bin=3)
    with pytest.raises(
        ConfigError, match=r"Platt has no setting bins\. This calibrator has no settings\."
    ):
        Platt().set_params(bins=3)


def test_one_that_is_not_fitted_says_its_name():
    with pytest.raises(
        NotFitted, match=r"Vector is not fitted\. Call fit\(logits, targets\) or restore"
    ):
        Vector().shared_calibrator()


def test_a_changed_setting_counts_from_the_next_fit():
    x, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [[0], [1], [0], [1]]
    it = Histogram(bins=2).fit(x, y)
    before = it.logits(x)
    np.testing.assert_array_equal(it.set_params(bins=9, pseudo_count=50.0).logits(x), before)
    assert (it.fit(x, y).logits(x) != before).any()


def test_what_all_labels_share_is_the_calibrator_itself():
    it = Beta()
    assert it.shared_calibrator() is it


def test_a_class_without_settings_has_no_parameters_before_its_first_instance():
    class WithoutSettings(BaseCalibrator):
        """Calibrator of which there is no instance yet."""

    assert not signature(WithoutSettings).parameters


@pytest.mark.parametrize(
    "make_calibrator", [Beta, Hierarchical, Histogram, Isotonic, IsotonicPerClass, Platt, Vector]
)
def test_logits_of_many_images_are_those_of_single_images(make_calibrator):
    rng = np.random.default_rng(0)
    x = 2 * rng.normal(size=(40_000, 3)) - 1  # several blocks
    fitted = make_calibrator().fit(x[:200], rng.random((200, 3)) < 0.3)
    logits, before = fitted.logits(x), x.copy()
    for row in (0, 10_921, 10_922, 10_923, 39_999):  # also at the limits of a block
        np.testing.assert_array_equal(logits[row : row + 1], fitted.logits(x[row : row + 1]))
    np.testing.assert_array_equal(x, before)
