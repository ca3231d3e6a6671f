"""Score the instances of an image with learned class embeddings, and pool these scores."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.inference_batches.inference_batches import inference_batches
from surelabel.methods.multiple_instance.class_parameters import ClassParameters
from surelabel.methods.text_scoring.scale_and_bias import initial_scale_and_bias
from surelabel.methods.text_scoring.text_scorer import TextScorer

MIN_INITIAL_SLOPE = 0.1  # a slope below this value would hardly change in training
NUMBER_PRIOR = 1 / 60  # prior weight of slopes and biases relative to that of vectors
INSTANCES_PER_BATCH = 8192  # instances that are compared with all texts at once; limits the memory


class InstanceScorer(nn.Module):
    """Score instances by learned class embeddings, and pool the scores over the instances.

        x'    = unit(x + M x)                                 u_c = unit(t_c + o_c)
        z_c   = s · tau · cos(x', u_c) - log mean_r exp(s · tau · cos(x', t_r))
        score = exp(alpha + alpha_c) · T log sum_instances exp(z_c / T) + beta + beta_c

    x is the vector of an instance, t_c is the text vector of label c, and t_r is a text vector of
    the reference list. tau is the scale of the encoder, and T is ``pooling_temperature``. The
    linear map M, the text offsets o_c, the relative scale s, the slopes and the biases are learned.
    The loss contains the squares of M, o_c, alpha_c and beta_c, weighted by ``prior_strength``.
    Relative to the mean loss of the known targets, this weight is inversely proportional to the
    number of known targets. The embedding of a rare label therefore stays close to its text, and
    its slope and bias stay close to the shared slope and bias. A label without positive images has
    the text embedding, the shared slope and the shared bias. After the fit, the score of a label
    does not depend on other labels.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Synonyms of one label are separated by ``|``.
        templates: Prompt templates; see ``TextScorer``.
        pooling_temperature: Temperature T of the pooling, in nats, > 0. In the limit of 0, the
            pooled score is the maximum.
        prior_strength: Weight of the squared elements of M and of all o_c in the sum of the losses
            of all targets, >= 0. Squared log slopes alpha_c and biases beta_c have 1/60 of this
            weight.

    Raises:
        ConfigError: If a setting is out of range.
    """

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str],
        pooling_temperature: float,
        prior_strength: float,
    ):
        super().__init__()
        if not 0 < pooling_temperature < math.inf or not 0 <= prior_strength < math.inf:
            raise ConfigError(
                "pooling_temperature must be above 0, prior_strength 0 or more, and both finite; "
                f"got pooling_temperature={pooling_temperature}, prior_strength={prior_strength}."
            )
        self.pooling_temperature, self.prior_strength = pooling_temperature, prior_strength
        self.text_scorer = TextScorer(encoder, names, templates=templates)
        width = encoder.width
        self.linear_map = nn.Parameter(torch.zeros(width, width))
        self.classes = ClassParameters(names, width)
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.log_slope = nn.Parameter(torch.zeros(()))
        self.bias = nn.Parameter(torch.zeros(()))
        self.n_known_targets = math.inf  # without a fit, the prior has no weight
        self.to(self.text_scorer.texts.device)

    @torch.no_grad()
    def initialize(self, instances: Tensor, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize the shared slope and bias by Platt scaling, and mark labels with positives.

        The number of known targets is also stored, because the prior depends on it.

        Args:
            instances: Vectors of t instances of n training images, ``(n, t, d)``.
            targets: Targets in [0, 1], ``(n, c)``.
            known: True where the target is known, ``(n, c)``.
            link: Link of the loss; see ``initial_scale_and_bias``.
        """
        slope, bias = initial_scale_and_bias(
            self._pooled_scores(instances), targets, known, link, min_slope=MIN_INITIAL_SLOPE
        )
        self.log_slope.copy_(slope.log())
        self.bias.copy_(bias)
        self.classes.has_positives.copy_((targets * known).sum(dim=0) > 0)
        self.n_known_targets = max(int(known.sum()), 1)

    def forward(self, instances: Tensor) -> Tensor:
        """Return the scores ``(n, c)`` of images with instances ``(n, t, d)``."""
        _, log_slopes, biases = self.classes()
        slopes = (self.log_slope + log_slopes).exp()
        scores: Tensor = slopes * self._pooled_scores(instances) + self.bias + biases
        return scores

    def instance_scores(self, instances: Tensor) -> Tensor:
        """Return the scores of each instance as if it were an image, ``(n, t, c)``."""
        _, log_slopes, biases = self.classes()
        slopes = (self.log_slope + log_slopes).exp()
        scores: Tensor = slopes * self._relative_scores(instances) + self.bias + biases
        return scores

    def prior_loss(self) -> Tensor:
        """Return the weighted sum of squares of the learned parameters, ``()``."""
        classes = self.classes
        numbers = self.prior_of(classes.log_slopes) + self.prior_of(classes.biases)
        vectors = self.prior_of(self.linear_map) + self.prior_of(classes.offsets)
        return vectors + NUMBER_PRIOR * numbers

    def prior_of(self, parameters: Tensor) -> Tensor:
        """Return the sum of squares of the given parameters, times the prior weight, ``()``.

        The prior weight is ``prior_strength`` divided by the number of known targets.
        """
        return self.prior_strength / self.n_known_targets * parameters.square().sum()

    def _pooled_scores(self, instances: Tensor) -> Tensor:
        """Return the pooled scores without slopes and biases, ``(n, c)``."""
        n_images = max(INSTANCES_PER_BATCH // instances.shape[1], 1)
        pooled = [
            (self._relative_scores(batch) / self.pooling_temperature).logsumexp(dim=1)
            for batch in inference_batches(instances, n_images)
        ]
        return self.pooling_temperature * torch.cat(pooled)

    def _relative_scores(self, instances: Tensor) -> Tensor:
        """Return the scores of instances relative to the reference list, ``(n, t, c)``."""
        mapped = F.normalize(instances + instances @ self.linear_map.T, dim=-1)
        texts = F.normalize(self.text_scorer.texts + self.classes()[0], dim=-1)
        scores: Tensor = self.text_scorer(self.log_scale.exp() * mapped, texts)
        return scores
