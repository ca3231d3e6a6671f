"""Fold the linear heads of the hidden layer into one vector for each output of a pair."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from surelabel.methods.variational.pair_posterior import PairPosterior


class FoldedHeads(NamedTuple):
    """Store the network ``relu(weight (x ⊙ t) + bias) vectors + constants`` with r outputs.

    The first output is the logit, the second the mean log variance of the latent mixture.

    Attributes:
        weight: Weight of the hidden layer, ``(h, d)``.
        bias: Bias of the hidden layer, ``(h,)``.
        vectors: Vectors of the outputs, ``(h, r)``.
        constants: Constants of the outputs, ``(r,)``.
    """

    weight: Tensor
    bias: Tensor
    vectors: Tensor
    constants: Tensor

    def with_output(self, head: nn.Linear) -> "FoldedHeads":
        """Return folded heads with one more output, a linear head of the hidden layer."""
        return self._replace(
            vectors=torch.cat([self.vectors, head.weight.detach().T.to(self.vectors)], dim=1),
            constants=torch.cat([self.constants, head.bias.detach().to(self.constants)]),
        )


@torch.no_grad()
def fold_posterior_heads(posterior: PairPosterior) -> FoldedHeads:
    """Return the logit and the mean log variance of a posterior as two folded outputs.

    The logit is that of the mixture mean, ``w · Σ_k α_k μ_k + b``. The mean log variance is the
    weighted mean of the log variances over components and dimensions. Limits are not applied,
    because they are not linear. The vectors are computed in float64.

    Source:
        None; ours.
    """
    mixture = posterior.mixture_logits.double().softmax(dim=0)
    decoder = posterior.decoder.weight[0].double()
    logit_weights = mixture[:, None] * decoder  # (K, d)
    variance_weights = (mixture[:, None] / len(decoder)).expand_as(logit_weights)
    heads = (posterior.mean_heads, logit_weights), (posterior.log_variance_heads, variance_weights)
    vectors = [head.weight.double().T @ weights.flatten() for head, weights in heads]
    constants = [head.bias.double() @ weights.flatten() for head, weights in heads]
    constants[0] = constants[0] + posterior.decoder.bias.double()[0]
    trunk = posterior.trunk
    return FoldedHeads(
        posterior.s_scale * trunk.weight.detach(),
        trunk.bias.detach(),
        torch.stack(vectors, dim=1).to(trunk.weight.dtype),
        torch.stack(constants).to(trunk.weight.dtype),
    )
