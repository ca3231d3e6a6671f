import numpy as np
import pytest
import torch

from surelabel.export.calibration.affine_module import AffineModule


@pytest.mark.parametrize("slope", [1e-3, 1.0, 300.0, 1e5])
@pytest.mark.parametrize("zero", [0.0, 0.31, -0.99, 25.0])
def test_a_steep_line_is_precise_where_it_crosses_0(slope, zero):
    shift = -slope * zero
    x = (zero + np.linspace(-40, 40, 4001) / slope).astype(np.float32)
    found = AffineModule(slope, shift)(torch.from_numpy(x)[:, None]).numpy()[:, 0]
    np.testing.assert_allclose(found, slope * x.astype(float) + shift, atol=1e-5)


def test_each_label_has_its_line():
    found = AffineModule([1.0, 2.0], [0.5, -1.0])(torch.tensor([[1.0, 1.0], [3.0, 0.0]]))
    assert found.tolist() == [[1.5, 1.0], [3.5, -1.0]]
