import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from surelabel.calibration import fit_scale_and_shift
from surelabel.errors import InputError


def sampled(n=400, c=20, seed=0):
    random = np.random.default_rng(seed)
    z = random.normal(-1, 2, size=(n, c))
    return z, (random.random((n, c)) < expit(z)).astype(float)


@pytest.mark.parametrize(("factor", "level"), [(2.0, 1.0), (0.5, -1.0), (1.0, 0.0)])
def test_many_targets_reveal_the_distortion(factor, level):
    z, y = sampled()
    scale, shift = fit_scale_and_shift(factor * z + level, y)
    assert scale == pytest.approx(1 / factor, rel=0.05)
    assert shift == pytest.approx(-level / factor, abs=0.1)


def test_the_result_minimizes_the_penalized_loss_of_a_plain_loop():
    z, y = sampled(30, 3, seed=1)

    def loss(parameters):
        total = parameters[0] ** 2 / (2 * np.log(2) ** 2) + parameters[1] ** 2 / 2
        for value, target in zip(z.ravel(), y.ravel(), strict=True):
            x = np.exp(parameters[0]) * value + parameters[1]
            total += np.log1p(np.exp(x)) - target * x
        return total

    expected = minimize(loss, [0.3, 0.3], method="Nelder-Mead", options={"xatol": 1e-6}).x
    scale, shift = fit_scale_and_shift(z, y)
    np.testing.assert_allclose([np.log(scale), shift], expected, atol=1e-4)


def test_few_targets_hardly_change_the_log_odds():
    scale, shift = fit_scale_and_shift([[0.1], [-0.1]], [[1], [0]])
    assert scale == pytest.approx(1, abs=0.05)
    assert shift == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("target", [0.0, 1.0])
def test_targets_of_one_class_give_finite_values(target):
    z, _ = sampled(500, 80)
    scale, shift = fit_scale_and_shift(z, np.full(z.shape, target))
    assert 0.05 <= scale <= 20
    assert -10 <= shift <= 10
    corrected = expit(scale * z + shift).mean()
    assert corrected < expit(z).mean() if target == 0 else corrected > expit(z).mean()


def test_unknown_targets_have_no_effect():
    z, y = sampled(30, 3)
    expected = fit_scale_and_shift(z[:20], y[:20])
    z[20:], y[20:] = 9, np.nan
    assert fit_scale_and_shift(z, y) == pytest.approx(expected)


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="logits must be finite"):
        fit_scale_and_shift([[np.nan]], [[1]])
    with pytest.raises(InputError, match="targets"):
        fit_scale_and_shift([[1.0]], [[1, 0]])
