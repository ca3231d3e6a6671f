import numpy as np

from surelabel.calibration.fitting.target_smoothing import (
    interpolate_smoothed_targets,
    smooth_targets,
    smoothed_target_levels,
)


def test_smoothed_targets_keep_their_order_and_leave_zero_and_one():
    found = smooth_targets(np.array([0.0, 0.5, 1.0, 1.0]))
    np.testing.assert_allclose(found, [1 / 3.5, (1 / 3.5 + 3.5 / 4.5) / 2, 3.5 / 4.5, 3.5 / 4.5])


def test_some_targets_are_smoothed_with_the_levels_of_all():
    y = np.array([0.0, 0.5, 1.0, 1.0])
    levels = smoothed_target_levels(y)
    np.testing.assert_allclose(levels, [1 / 3.5, 3.5 / 4.5])
    np.testing.assert_array_equal(
        interpolate_smoothed_targets(y[1:3], *levels), smooth_targets(y)[1:3]
    )
