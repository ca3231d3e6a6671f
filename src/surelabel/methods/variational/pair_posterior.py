"""Compute the latent similarity of a pair from the product of two unit vectors."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.errors import ConfigError
from surelabel.methods.variational.component_choice import choose_components, sample_gumbel_noise
from surelabel.methods.variational.gaussian_mixture import GaussianMixture
from surelabel.methods.variational.logit_mixture import LogitMixture

MIN_LOG_VARIANCE = -10.0
MAX_LOG_VARIANCE_RANGE = (-5.0, 10.0)


class SampledPairs(NamedTuple):
    """Store the tensors of a training step with n images and s texts.

    Attributes:
        hidden: Output of the hidden layer, ``(n, s, h)``.
        latent: Mixture of the latent vectors, of shape ``(n, s)``.
        components: Index of the sampled component, ``(n, s)``.
        logits: Sampled logits, ``(n, s)``.
    """

    hidden: Tensor
    latent: GaussianMixture
    components: Tensor
    logits: Tensor


class PairPosterior(nn.Module):
    """Compute the mixture of the latent similarity of each pair, and decode it to a logit.

        s      = s_scale · x ⊙ t
        hidden = relu(W s + b)
        μ_k, log σ_k² = linear functions of hidden, for K components
        logit  = w · z + b, with z from the mixture of N(μ_k, σ_k²)

    x is the unit vector of the image, t that of the text, and ⊙ the product of their elements. All
    pairs share the weights of the components, which are learned.

    Args:
        width: Width d of the vectors, and of the latent vector.
        hidden_width: Width h of the hidden layer, >= 1. If None, the width of the vectors.
        components: Number K of components, >= 1.
        s_scale: Factor of the products of the elements, > 0.
        max_log_variance: Largest log variance in sampling and losses, in [-5, 10]. The smallest log
            variance is -10.

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        VACSR, arXiv:2605.30968, eqs. 4 and 5.

    Differs:
        The paper states only the numbers of parameters of encoder and decoder. Here the encoder has
        one hidden layer, and the decoder is linear. The number of parameters is that of the paper.
    """

    def __init__(
        self,
        width: int,
        *,
        hidden_width: int | None = None,
        components: int = 2,
        s_scale: float = 1.0,
        max_log_variance: float = 4.0,
    ):
        super().__init__()
        hidden_width = width if hidden_width is None else hidden_width
        for name, value in (("hidden_width", hidden_width), ("components", components)):
            if value < 1:
                raise ConfigError(f"{name} must be 1 or more; got {value}.")
        if not 0 < s_scale < math.inf:
            raise ConfigError(f"s_scale must be above 0, and finite; got {s_scale}.")
        low, high = MAX_LOG_VARIANCE_RANGE
        if not low <= max_log_variance <= high:
            raise ConfigError(
                f"max_log_variance must be in [{low:g}, {high:g}]; got {max_log_variance}."
            )
        self.s_scale, self.components = s_scale, components
        self.max_log_variance = max_log_variance
        self.trunk = nn.Linear(width, hidden_width)
        self.mean_heads = nn.Linear(hidden_width, components * width)
        self.log_variance_heads = nn.Linear(hidden_width, components * width)
        self.mixture_logits = nn.Parameter(torch.zeros(components))
        self.decoder = nn.Linear(width, 1)

    @torch.no_grad()
    def start_with_cosines(self, *, scale: float, bias: float) -> None:
        """Set the weights so that the logit without sampling is about ``scale · cosine + bias``.

        The first hidden unit computes the cosine, and the next units compute orthogonal directions
        of d · x ⊙ t. The mean of each component is d · x ⊙ t, whose elements have about the size of
        the prior. If the hidden layer is wider than d, the other units are random and do not change
        the logit.

        Args:
            scale: Factor of the cosine.
            bias: Logit of orthogonal vectors.
        """
        hidden_width, width = self.trunk.weight.shape
        rank = min(width, hidden_width)
        directions = torch.randn(width, rank)
        directions[:, 0] = 1.0
        basis = torch.randn(hidden_width, width) / math.sqrt(width)
        basis[:rank] = torch.linalg.qr(directions).Q.T
        offsets = torch.zeros(hidden_width)
        offsets[:rank] = 2.0
        offsets[0] = math.sqrt(width)
        self.trunk.weight.copy_(width / self.s_scale * basis)
        self.trunk.bias.copy_(offsets)
        basis[rank:] = 0.0
        self.mean_heads.weight.copy_(basis.T.repeat(self.components, 1))
        self.mean_heads.bias.sub_(self.mean_heads.weight @ self.trunk.bias)
        self.decoder.weight.fill_(scale / width)
        self.decoder.bias.fill_(bias)

    def hidden(self, images: Tensor, texts: Tensor) -> Tensor:
        """Return the hidden layer of all pairs of images ``(n, d)`` and texts ``(s, d)``.

        Returns:
            Tensor of shape ``(n, s, h)``.
        """
        return F.relu(self.trunk(self.s_scale * images[:, None] * texts))

    def latent(self, hidden: Tensor) -> GaussianMixture:
        """Return the mixture of the latent vector of each pair, from ``hidden`` ``(…, h)``."""
        means = self.mean_heads(hidden).unflatten(-1, (self.components, -1))
        weights = self.mixture_logits.softmax(dim=0)
        return GaussianMixture(means, self.log_variances(hidden), weights)

    def log_variances(self, hidden: Tensor) -> Tensor:
        """Return the limited log variances, ``(…, K, d)``, from ``hidden`` ``(…, h)``.

        The gradient ignores the limits, so that training can move values back inside the limits.
        """
        values: Tensor = self.log_variance_heads(hidden).unflatten(-1, (self.components, -1))
        return values + (values.clamp(MIN_LOG_VARIANCE, self.max_log_variance) - values).detach()

    def mean_log_variances(self, hidden: Tensor) -> Tensor:
        """Return the mean log variance without limits, ``(…)``, from ``hidden`` ``(…, h)``.

        The mean is weighted by the weights of the components, which have no gradient.
        """
        values: Tensor = self.log_variance_heads(hidden).unflatten(-1, (self.components, -1))
        return values.mean(dim=-1) @ self.mixture_logits.detach().softmax(dim=0)

    def logit_mixture(self, latent: GaussianMixture) -> LogitMixture:
        """Return the distribution of the logit of each pair."""
        return LogitMixture.of_latent(latent, self.decoder)

    def sample_pairs(
        self, images: Tensor, texts: Tensor, *, temperature: float = 1.0
    ) -> SampledPairs:
        """Return sampled logits of all pairs of images ``(n, d)`` and texts ``(s, d)``.

        Args:
            images: Unit vectors of images.
            texts: Unit vectors of texts.
            temperature: Temperature of the choice of components, > 0.
        """
        hidden = self.hidden(images, texts)
        latent = self.latent(hidden)
        logits = self.logit_mixture(latent)
        gumbel_noise = sample_gumbel_noise(*logits.means.shape, like=logits.means)
        weights = choose_components(self.mixture_logits, gumbel_noise, temperature=temperature)
        samples = logits.sample(weights, torch.randn_like(logits.means))
        return SampledPairs(hidden, latent, weights.argmax(dim=-1), samples)
