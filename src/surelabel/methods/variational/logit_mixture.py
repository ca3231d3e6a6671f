"""Compute the distribution of the logit of a pair, for a linear decoder of the latent vector."""

import math
from typing import NamedTuple, Self

from torch import Tensor, nn

from surelabel.methods.variational.gaussian_mixture import GaussianMixture

MIN_VARIANCE = 1e-24  # the square root has a finite gradient at this variance


class LogitMixture(NamedTuple):
    """Store a mixture of K normal distributions of the logit of each pair.

    Attributes:
        means: Means of the components, ``(…, K)``.
        variances: Variances of the components, ``(…, K)``.
        weights: Weights of the components, ``(K,)``, with sum 1.
    """

    means: Tensor
    variances: Tensor
    weights: Tensor

    @classmethod
    def of_latent(cls, latent: GaussianMixture, decoder: nn.Linear) -> Self:
        """Return the exact distribution of ``decoder(z)`` for a latent mixture over z.

        Source:
            Kingma et al., Variational Dropout and the Local Reparameterization Trick, NIPS 2015,
            arXiv:1506.02557.
        """
        weight = decoder.weight[0]
        return cls(
            latent.means @ weight + decoder.bias,
            latent.log_variances.exp() @ weight.square(),
            latent.weights,
        )

    def mean(self) -> Tensor:
        """Return the mean of the logit, ``(…)``, which is the logit without sampling."""
        return self.means @ self.weights

    def sample(self, component_weights: Tensor, noise: Tensor) -> Tensor:
        """Return a reparameterized sample of the logit, ``(…)``.

        The sample has the distribution of the decoded sample of the latent vector, but needs one
        random number for each component instead of d.

        Args:
            component_weights: One-hot weights of the sampled components, ``(…, K)``.
            noise: Standard normal noise, ``(…, K)``.
        """
        deviations = self.variances.clamp(min=MIN_VARIANCE).sqrt()
        return (component_weights * (self.means + deviations * noise)).sum(dim=-1)

    def variance(self) -> Tensor:
        """Return the variance of the logit, ``(…)``, within and between the components."""
        second_moments = (self.variances + self.means.square()) @ self.weights
        return second_moments - self.mean().square()

    def moderated_probabilities(self) -> Tensor:
        """Return the approximate mean of the probability over the distribution, ``(…)``.

        Source:
            MacKay, The Evidence Framework Applied to Classification Networks, Neural Computation
            1992: the probit approximation, here for each component.
        """
        scaled = self.means / (1 + math.pi / 8 * self.variances).sqrt()
        return scaled.sigmoid() @ self.weights
