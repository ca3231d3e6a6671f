"""Define the mixture of diagonal normal distributions of the latent similarity of a pair."""

from typing import NamedTuple

from torch import Tensor


class GaussianMixture(NamedTuple):
    """Store a mixture of K normal distributions with diagonal covariance and shared weights.

    Attributes:
        means: Means of the components, ``(…, K, d)``.
        log_variances: Logarithms of the variances, ``(…, K, d)``.
        weights: Weights of the components, ``(K,)``, with sum 1.
    """

    means: Tensor
    log_variances: Tensor
    weights: Tensor

    def divergence_bounds(self) -> Tensor:
        """Return an upper bound of the Kullback-Leibler divergence from N(0, I), ``(…)``.

            bound = Σ_k weight_k · mean over d of (σ² + μ² - 1 - log σ²) / 2

        The unit is nats per dimension. The exact divergence has no closed form. The bound exceeds
        the exact divergence by at most log K nats, summed over all dimensions.

        Source:
            VACSR, arXiv:2605.30968, eqs. 6, 7 and 16-26.

        Differs:
            The paper does not state the reduction; here it is the mean over the dimensions.
        """
        variances = self.log_variances.exp()
        elements = variances + self.means.square() - 1 - self.log_variances
        return elements.mean(dim=-1) @ self.weights / 2

    def mean_log_variances(self) -> Tensor:
        """Return the weighted mean of the log variances over components and dimensions, ``(…)``."""
        return self.log_variances.mean(dim=-1) @ self.weights

    def mean_variances(self) -> Tensor:
        """Return the weighted mean of the variances over components and dimensions, ``(…)``."""
        return self.log_variances.exp().mean(dim=-1) @ self.weights

    def sample(self, component_weights: Tensor, noise: Tensor) -> Tensor:
        """Return a reparameterized sample of the latent vector of each pair, ``(…, d)``.

            z = Σ_k w_k · (μ_k + σ_k · ε_k)

        Args:
            component_weights: One-hot weights w of the sampled components, ``(…, K)``.
            noise: Standard normal noise ε, ``(…, K, d)``.

        Source:
            VACSR, arXiv:2605.30968, section 3.1.
        """
        samples = self.means + (self.log_variances / 2).exp() * noise
        return (component_weights[..., None] * samples).sum(dim=-2)
