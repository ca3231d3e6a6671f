import numpy as np
import pytest
import torch

from surelabel.links import Bias


@pytest.mark.parametrize("bias", [-16.5, 0.0, 3.0])
def test_the_probability_is_that_of_the_sigmoid_loss(bias):
    for score in (-3.0, 0.0, 17.25):
        probability = 1 / (1 + np.exp(-(score + bias)))
        logits = Bias(bias=bias).logits(np.array([score]))
        np.testing.assert_allclose(1 / (1 + np.exp(-logits)), [probability])


def test_the_default_is_the_initial_bias_of_the_paper():
    assert torch.equal(Bias().log_odds(torch.tensor([10.0])), torch.zeros(1))


def test_logits_beyond_forty_are_clipped_after_the_bias():
    assert Bias(bias=-10.0).logits(np.array([-31.0, 51.0, 49.0])).tolist() == [-40, 40, 39]
