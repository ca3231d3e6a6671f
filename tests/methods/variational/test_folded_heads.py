import pytest
import torch
from torch import nn

from surelabel.methods.variational.folded_heads import fold_posterior_heads
from surelabel.methods.variational.pair_posterior import PairPosterior


@pytest.mark.parametrize("components", [1, 2, 4])
def test_folded_heads_equal_the_network(components):
    torch.manual_seed(components)
    posterior = PairPosterior(6, hidden_width=9, components=components, s_scale=3.0)
    nn.init.normal_(posterior.mixture_logits)
    x, t = torch.randn(4, 6), torch.randn(5, 6)
    heads = fold_posterior_heads(posterior)
    hidden = torch.relu((x[:, None] * t) @ heads.weight.T + heads.bias)
    outputs = hidden @ heads.vectors + heads.constants
    latent = posterior.latent(posterior.hidden(x, t))
    torch.testing.assert_close(outputs[..., 0], posterior.logit_mixture(latent).mean())
    torch.testing.assert_close(outputs[..., 1], latent.mean_log_variances())


def test_another_head_of_the_hidden_layer_is_one_more_output():
    torch.manual_seed(0)
    posterior, head = PairPosterior(6, hidden_width=9), nn.Linear(9, 1)
    heads = fold_posterior_heads(posterior).with_output(head)
    hidden = torch.randn(3, 9)
    outputs = hidden @ heads.vectors + heads.constants
    torch.testing.assert_close(outputs[:, 2:], head(hidden))


def test_folded_heads_do_not_train():
    assert not any(tensor.requires_grad for tensor in fold_posterior_heads(PairPosterior(4)))
