"""Match image regions to labels by optimal transport on their cosines."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from surelabel.counts import format_count
from surelabel.errors import ConfigError, NotConverged
from surelabel.tables import configure_table_entry, table_entry_settings
from surelabel.transport import (
    TRANSPORTS,
    TransportPlan,
    add_knowledge_constraint_to_cost,
    knowledge_constrained_cost,
    knowledge_constrained_log_teacher_plan,
    knowledge_constrained_region_weights,
)

MAX_STEPS = 10_000  # limit outside training; 17 to 80 labels of scenes-80 need at most 101 steps


@dataclass(frozen=True)
class RegionMatching:
    """Compute transport plans between image regions and labels of equal weight.

    Attributes:
        transport: Entry of ``TRANSPORTS``.
        regularization: Entropic regularization of the transport plan, > 0. The transport
            ``softmax`` uses this value as its temperature.
        knowledge_weight: Weight of the teacher plan, >= 0.
        presence_scale: Inverse temperature, >= 0, of the softmax over regions. This softmax
            computes the weight of each region from its highest cosine with any label. If 0, all
            regions have equal weights.
        logit_scale: Factor of the cosines in the softmax over labels, > 0.

    Raises:
        ConfigError, UnknownName: If a setting is unknown or out of range.

    Example:
        >>> matching = RegionMatching(transport="average", presence_scale=0.0)
        >>> matching.pool_similarities(torch.tensor([[[0.2, 0.4], [0.4, 0.2]]]))
        tensor([[0.3000, 0.3000]])
    """

    transport: str = "sinkhorn"
    regularization: float = 0.1
    knowledge_weight: float = 0.05
    presence_scale: float = 10.0
    logit_scale: float = 100.0

    def __post_init__(self) -> None:
        configure_table_entry(TRANSPORTS, self.transport)
        if not 0 < self.regularization < math.inf:
            raise ConfigError(
                f"regularization must be above 0, and finite; got {self.regularization}."
            )
        if not 0 <= self.knowledge_weight < math.inf:
            raise ConfigError(
                f"knowledge_weight must be 0 or more, and finite; got {self.knowledge_weight}."
            )
        if not 0 <= self.presence_scale < math.inf:
            raise ConfigError(
                f"presence_scale must be 0 or more, and finite; got {self.presence_scale}."
            )

    def plan(
        self,
        similarities: Tensor,
        frozen: Tensor | None = None,
        positive: Tensor | None = None,
        *,
        max_steps: int = MAX_STEPS,
    ) -> TransportPlan:
        """Compute the transport plan between the regions of each image and the labels.

        Args:
            similarities: Cosines of regions and labels, ``(n, p, c)``.
            frozen: Cosines of regions and labels of the frozen encoder, ``(n, p, c)``, from which
                the teacher plan is computed. If None, or if ``knowledge_weight`` is 0, no teacher
                plan is used.
            positive: Boolean mask of the positive labels of each image, ``(n, c)``, required with
                ``frozen``.
            max_steps: Largest number of steps of iterative transports.
        """
        cost = knowledge_constrained_cost(similarities, sharpness=self.logit_scale)
        regularization = self.regularization
        if frozen is not None and positive is not None and self.knowledge_weight:
            cost, regularization = add_knowledge_constraint_to_cost(
                cost,
                knowledge_constrained_log_teacher_plan(
                    frozen, positive, sharpness=self.logit_scale
                ),
                entropy_weight=self.regularization,
                teacher_weight=self.knowledge_weight,
            )
        values = {
            "regularization": regularization,
            "temperature": regularization,
            "max_steps": max_steps,
        }
        solve = TRANSPORTS[self.transport]
        options = {key: values[key] for key in values.keys() & table_entry_settings(solve).keys()}
        n, _, c = cost.shape
        label_weights = cost.new_full((n, c), 1 / c)
        return solve(cost, self.region_weights(similarities), label_weights, **options)

    @property
    def needs_all_labels(self) -> bool:
        """Return whether the plan must be computed for all scored labels.

        If False, the plan of reference labels can be extended to each label; see ``region_shares``.
        """
        half = torch.full((1, 2), 0.5)
        plan = TRANSPORTS[self.transport](torch.zeros(1, 2, 2), half, half)
        return plan.region_potentials is None

    def region_weights(self, similarities: Tensor) -> Tensor:
        """Return the weight of each region in the plan, ``(n, p)``, with sum 1 per image."""
        if self.presence_scale:
            return knowledge_constrained_region_weights(
                similarities, temperature=1 / self.presence_scale
            )
        n, p, _ = similarities.shape
        return torch.full((n, p), 1 / p, dtype=torch.float32, device=similarities.device)

    def pool_similarities(
        self,
        similarities: Tensor,
        plan: TransportPlan | None = None,
        *,
        reference: Tensor | None = None,
        is_new: Tensor | None = None,
    ) -> Tensor:
        """Return for each label the mean cosine of its matched regions, ``(n, c)``.

        Args:
            similarities: Cosines of regions and labels, ``(n, p, c)``.
            plan: Transport plan of these labels. If None, the fractions of ``region_shares`` are
                used.
            reference, is_new: Cosines of regions and reference labels, and mask of the labels that
                are not reference labels. See ``region_shares``.

        Raises:
            NotConverged: If the plan of an image did not converge.
        """
        if plan is None and reference is not None:
            return (self.region_shares(similarities, reference, is_new) * similarities).sum(1)
        plan = self._converged_plan(similarities) if plan is None else plan
        return plan.apply(similarities) * similarities.shape[2]

    def region_shares(
        self,
        similarities: Tensor,
        reference: Tensor | None = None,
        is_new: Tensor | None = None,
    ) -> Tensor:
        """Return the fraction of each region in the plan of each label, ``(n, p, c)``.

        The fractions of a label sum to 1 over the regions.

        Args:
            similarities: Cosines of regions and labels, ``(n, p, c)``.
            reference: Cosines of regions and r reference labels, ``(n, p, r)``. If given, the plan
                is computed for the reference labels, and is extended to each label by
                ``TransportPlan.column_shares``. The fractions of a label are then independent of
                the other labels. If ``needs_all_labels`` is True, ``reference`` is ignored.
            is_new: Mask of the labels that are not reference labels, ``(c,)``, required with
                ``reference``.

        Raises:
            NotConverged: If the plan of an image did not converge.
        """
        if reference is None or self.needs_all_labels:
            return self._converged_plan(similarities).matrix * similarities.shape[2]
        cost = knowledge_constrained_cost(
            similarities, sharpness=self.logit_scale, reference=reference, is_new=is_new
        )
        return self._converged_plan(reference).column_shares(cost)

    def _converged_plan(self, similarities: Tensor) -> TransportPlan:
        """Return the plan, or raise an error that names the setting ``regularization``."""
        plan = self.plan(similarities)
        n_failed = int((~plan.converged).sum())
        if n_failed:
            raise NotConverged(
                f"Region matching did not converge in {int(plan.steps.max())} steps for {n_failed} "
                f"of {format_count(len(plan.converged), 'image')}. Raise method.regularization, "
                f"which is {self.regularization:g}."
            )
        return plan
