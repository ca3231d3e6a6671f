import math
import warnings

import pytest
import torch

from surelabel.methods.variational.gaussian_mixture import GaussianMixture
from surelabel.methods.variational.noise_inflation import WARM_UP_STEPS, NoiseInflationCheck
from surelabel.methods.variational.pair_posterior import SampledPairs

POSITIVE = torch.eye(2, dtype=torch.bool)


def check_after(steps, *, logit, log_variance, min_probability=0.3, positive=POSITIVE):
    """Return the check after equal steps; pairs that do not match have other values."""
    check = NoiseInflationCheck(min_probability=min_probability)
    logits = torch.where(POSITIVE, logit, -7.0)
    log_variances = torch.where(POSITIVE, log_variance, 9.0)[..., None, None].expand(2, 2, 2, 3)
    latent = GaussianMixture(torch.zeros(2, 2, 2, 3), log_variances, torch.full((2,), 0.5))
    sample = SampledPairs(torch.zeros(2, 2, 1), latent, torch.zeros(2, 2), logits)
    for _ in range(steps):
        check.update(sample, positive)
    return check


def test_a_low_probability_of_matching_pairs_is_reported_with_what_to_do():
    check = check_after(WARM_UP_STEPS, logit=-2.0, log_variance=1.0)
    with pytest.warns(UserWarning, match=r"probability of 0\.12.*detach_trunk=true"):
        check.warn_if_inflated()


def test_a_high_variance_of_matching_pairs_is_reported():
    check = check_after(WARM_UP_STEPS, logit=3.0, log_variance=3.5)
    with pytest.warns(UserWarning, match=r"mean log variance of 3\.5"):
        check.warn_if_inflated()


@pytest.mark.parametrize(
    ("steps", "settings"),
    [
        (WARM_UP_STEPS, {"logit": 0.0, "log_variance": 1.0}),
        (WARM_UP_STEPS - 1, {"logit": -5.0, "log_variance": 9.0}),
        (WARM_UP_STEPS, {"logit": -5.0, "log_variance": 0.0, "min_probability": 0.0}),
        (WARM_UP_STEPS, {"logit": -5.0, "log_variance": 9.0, "positive": ~POSITIVE & POSITIVE}),
    ],
    ids=["no inflation", "warm-up", "rare labels", "no positive pair"],
)
def test_no_warning_without_noise_inflation(steps, settings):
    check = check_after(steps, **settings)
    with warnings.catch_warnings(record=True) as caught:
        check.warn_if_inflated()
    assert not caught


def test_the_last_steps_count_most():
    check = check_after(WARM_UP_STEPS, logit=-5.0, log_variance=0.0)
    logits = torch.full((2, 2), 4.0)
    latent = GaussianMixture(torch.zeros(2, 2, 1, 1), torch.zeros(2, 2, 1, 1), torch.ones(1))
    for _ in range(100):
        check.update(SampledPairs(torch.zeros(2, 2, 1), latent, logits, logits), POSITIVE)
    expected = 1 / (1 + math.exp(-4.0)) * (1 - 0.98**100) + 1 / (1 + math.exp(5.0)) * 0.98**100
    assert float(check.running_probability) == pytest.approx(expected, abs=1e-4)


def test_the_running_means_are_saved_and_resume():
    check = check_after(WARM_UP_STEPS, logit=-2.0, log_variance=1.0)
    other = NoiseInflationCheck(min_probability=0.3)
    other.load_state_dict(check.state_dict())
    with pytest.warns(UserWarning, match="probability of 0.12"):
        other.warn_if_inflated()
