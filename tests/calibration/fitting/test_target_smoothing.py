import numpy as np

from surelabel.calibration.fitting.target_smoothing import smooth_targets


def test_smoothed_targets_keep_their_order_and_leave_zero_and_one():
    found = smooth_targets(np.array([0.0, 0.5, 1.0, 1.0]))
    np.testing.assert_allclose(found, [1 / 3.5, (1 / 3.5 + 3.5 / 4.5) / 2, 3.5 / 4.5, 3.5 / 4.5])
