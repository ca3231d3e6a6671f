import numpy as np
import torch
from scipy.special import log_expit

from surelabel.export.calibration.log_probabilities import log_add_exp, log_sigmoid, log_weights

X = np.linspace(-700, 700, 2801)


def test_the_log_sigmoid_is_precise_in_both_tails():
    found = log_sigmoid(torch.from_numpy(X).float()).numpy()
    np.testing.assert_allclose(found, log_expit(X), rtol=1e-6, atol=1e-7)


def test_logarithms_of_sums_do_not_overflow():
    a, b = np.meshgrid(X[::40], X[::40])
    found = log_add_exp(torch.from_numpy(a).float(), torch.from_numpy(b).float()).numpy()
    np.testing.assert_allclose(found, np.logaddexp(a, b), rtol=1e-6, atol=1e-6)


def test_a_weight_of_0_has_no_share():
    logarithms = torch.from_numpy(log_weights([0.0, 0.25])).float()
    assert logarithms[1].exp().item() == 0.25
    assert log_add_exp(logarithms[0] - 40, logarithms[1] - 40) == logarithms[1] - 40
