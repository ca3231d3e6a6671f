import numpy as np
import torch

from surelabel.calibration.fitting.isotonic_curve import IsotonicCurve
from surelabel.export.calibration.isotonic_module import IsotonicCurveModule


def test_knots_closer_than_float32_numbers_keep_their_intervals():
    knots = np.array([-1.0, 0.1, 0.1 + 1e-10, 5.0, 5.0 + 2e-9, 5.0 + 3e-7, 7.0])
    levels = np.array([-20.0, -6.0, 3.0, 4.0, 6.0, 30.0, 31.0])
    curve = IsotonicCurve(knots, levels)
    rounded = knots.astype(np.float32)
    x = np.concatenate(
        [
            np.linspace(-3, 9, 2001, dtype=np.float32),
            rounded,
            np.nextafter(rounded, np.float32(np.inf)),
            np.nextafter(rounded, np.float32(-np.inf)),
        ]
    )
    found = IsotonicCurveModule([curve])(torch.from_numpy(x)[:, None]).numpy()[:, 0]
    np.testing.assert_allclose(found, curve(x), atol=1e-5)


def test_curves_of_different_lengths_belong_to_their_labels():
    curves = [
        IsotonicCurve(np.array([0.0]), np.array([2.0])),
        IsotonicCurve(np.array([-1.0, 1.0, 2.0]), np.array([-3.0, 0.0, 5.0])),
    ]
    x = np.linspace(-2, 3, 101, dtype=np.float32)
    found = IsotonicCurveModule(curves)(torch.from_numpy(x)[:, None].expand(-1, 2)).numpy()
    for curve, column in zip(curves, found.T, strict=True):
        np.testing.assert_allclose(column, curve(x), atol=1e-6)
