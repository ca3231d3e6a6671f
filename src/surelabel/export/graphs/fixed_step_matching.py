"""Match image regions to labels with a fixed number of Sinkhorn steps."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.methods import Method, RecoverMatch
from surelabel.methods.prompt_tuning.region_shares import RegionShares
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.transport import TransportPlan, knowledge_constrained_cost

ITERATIVE_TRANSPORTS = ("accelerated_sinkhorn", "sinkhorn")
CLOSED_FORM_TRANSPORTS = ("average", "softmax")
SINKHORN_STEPS = 100
TOLERANCE = 1e-4  # error of the region marginal at which an iteration stops
STOPPING_RANGE = 0.02  # relative range above the tolerance in which steps are smaller
STOPPING_SLOPE = 1 / (TOLERANCE * STOPPING_RANGE)
MAX_EXPONENT = 40.0  # of the kernel in nats; exp(-87) underflows in single precision


@dataclass(frozen=True)
class FixedStepMatching(RegionMatching):
    """Compute the transport plans of :class:`RegionMatching` with a fixed number of steps.

    The graph computes all steps for each image, but no longer changes a plan whose error is small
    enough. If :class:`RegionMatching` needs at most this number of steps, the plans are therefore
    equal, except that steps are smaller close to the stopping rule. The transport
    ``accelerated_sinkhorn`` is computed without acceleration, so that its plans differ within the
    tolerance.

    On 300 validation images of scenes-80, the probabilities differ by at most 2e-5 for 20 and 80
    labels, and by at most 1e-4 for 6 labels, some of whose plans need more than 100 steps. The mean
    difference of the logits is at most 2e-6, and the maximum is 1e-3. Without the stopping rule,
    the probabilities differ by up to 3e-4.

    Attributes:
        steps: Number of Sinkhorn steps of each plan, >= 1.
        is_extended: Whether the plan of reference labels can be extended to each label.

    Raises:
        ConfigError: If the transport is no tensor computation, or the regularization is so small
            that the kernel may underflow.
    """

    steps: int = SINKHORN_STEPS
    is_extended: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transport not in (*ITERATIVE_TRANSPORTS, *CLOSED_FORM_TRANSPORTS):
            raise ConfigError(
                f"The transport {self.transport} cannot be exported, because it is not a tensor "
                "computation. Fit again with method.transport=sinkhorn."
            )
        if self.is_iterative and self.regularization * MAX_EXPONENT < 1:
            raise ConfigError(
                f"Region matching with a fixed number of steps needs a regularization of at least "
                f"{1 / MAX_EXPONENT:g}; got {self.regularization:g}, for which the kernel may "
                "underflow. Fit again with a larger method.regularization."
            )

    @property
    def is_iterative(self) -> bool:
        """Return whether the transport is computed by an iteration."""
        return self.transport in ITERATIVE_TRANSPORTS

    @property
    def needs_all_labels(self) -> bool:
        """Return whether the plan must be computed for all scored labels."""
        return not self.is_extended

    def pool_similarities(
        self,
        similarities: Tensor,
        plan: TransportPlan | None = None,
        *,
        reference: Tensor | None = None,
        is_new: Tensor | None = None,
    ) -> Tensor:
        """Return for each label the mean cosine of its matched regions, ``(n, c)``.

        The arguments are those of :class:`RegionMatching`.
        """
        if plan is None and reference is not None:
            return (self.region_shares(similarities, reference, is_new) * similarities).sum(1)
        plan = self._plan_after_steps(similarities) if plan is None else plan
        return plan.apply(similarities) * similarities.shape[2]

    def region_shares(
        self,
        similarities: Tensor,
        reference: Tensor | None = None,
        is_new: Tensor | None = None,
    ) -> Tensor:
        """Return the fraction of each region in the plan of each label, ``(n, p, c)``.

        The arguments are those of :class:`RegionMatching`.
        """
        if reference is None or self.needs_all_labels:
            return self._plan_after_steps(similarities).matrix * similarities.shape[2]
        cost = knowledge_constrained_cost(
            similarities, sharpness=self.logit_scale, reference=reference, is_new=is_new
        )
        return self._plan_after_steps(reference).column_shares(cost)

    def _plan_after_steps(self, similarities: Tensor) -> TransportPlan:
        if not self.is_iterative:
            return self.plan(similarities)
        cost = knowledge_constrained_cost(similarities, sharpness=self.logit_scale)
        rows = self.region_weights(similarities)
        return fixed_step_sinkhorn(cost, rows, regularization=self.regularization, steps=self.steps)


def fixed_step_sinkhorn(
    cost: Tensor, rows: Tensor, *, regularization: float, steps: int
) -> TransportPlan:
    """Return the plan of a fixed number of Sinkhorn steps for labels of equal weight.

    Each step computes ``left = u / (K right)`` and ``right = v / (K' left)``, where u and v are the
    weights of regions and labels, and K = exp((lowest cost of the image - cost) / regularization).
    If the total error of the region marginal of an image is at most ``TOLERANCE``, further steps do
    not change its plan, as in ``sinkhorn``. Slightly above ``TOLERANCE``, the steps are smaller, so
    that a rounding error of a runtime cannot add a whole step.

    Args:
        cost: Cost of p regions for c labels in n images, in [0, 1], ``(n, p, c)``.
        rows: Weights of the regions, which sum to 1, ``(n, p)``.
        regularization: Weight of the entropy, > 0.
        steps: Number of steps, >= 1.
    """
    kernel = ((cost.amin((1, 2), keepdim=True) - cost) / regularization).exp()
    weights, scaled = rows[:, :, None], cost.shape[2] * kernel.transpose(1, 2)
    left = weights / kernel.sum(2, keepdim=True)
    right = 1 / (scaled @ left)
    for _ in range(steps - 1):
        row_sums = kernel @ right
        error = (left * row_sums - weights).abs().sum(1, keepdim=True)
        share = (error * STOPPING_SLOPE - 1 / STOPPING_RANGE).clamp(0, 1)  # 0: no further change
        left = torch.lerp(left, weights / row_sums, share)
        right = 1 / (scaled @ left)
    left, right = left[:, :, 0], right[:, :, 0]
    return TransportPlan.closed_form(
        kernel, left, right, region_potentials=left.log(), regularization=regularization
    )


def use_fixed_step_matching(method: Method) -> FixedStepMatching | None:
    """Replace the region matching of a method by one with a fixed number of steps.

    Args:
        method: Fitted method, changed in place.

    Returns:
        The new region matching, or None if the method matches no regions.
    """
    fixed = None
    for module in method.modules():
        if isinstance(module, RecoverMatch | RegionShares):
            matching = module.matching
            values = {field.name: getattr(matching, field.name) for field in fields(RegionMatching)}
            is_extended = not matching.needs_all_labels
            fixed = FixedStepMatching(**values, steps=SINKHORN_STEPS, is_extended=is_extended)
            module.matching = fixed
    return fixed
