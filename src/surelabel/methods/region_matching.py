"""Which region of a picture speaks for which label."""

from dataclasses import dataclass

import torch
from torch import Tensor

from surelabel.errors import ConfigError, NotConverged
from surelabel.tables import choose, settings
from surelabel.transport import (
    TRANSPORTS,
    Plan,
    constrained,
    label_presence,
    log_teacher,
    matching_cost,
)

IN_USE = 10_000  # steps; with 17 to 80 names of scenes-80 at most 101 were needed


@dataclass(frozen=True)
class RegionMatching:
    """Regions and labels, matched by their cosines; every label has the same weight.

    Attributes:
        transport: Entry of ``TRANSPORTS``.
        regularization: How evenly mass spreads (lambda1), > 0; of softmax the temperature.
        knowledge: Pull of the teacher's plan (lambda2), >= 0.
        presence: How sharply regions are weighed by how much they look like any label, >= 0; 0
            weighs all alike, and the paper's temperature of 0.1 is 10.
        sharpness: Factor of the cosines in the softmax over labels, > 0.

    Raises:
        ConfigError, UnknownName: a setting is unknown or out of range.

    Example:
        >>> matching = RegionMatching(transport="average", presence=0.0)
        >>> matching.pooled(torch.tensor([[[0.2, 0.4], [0.4, 0.2]]]))
        tensor([[0.3000, 0.3000]])
    """

    transport: str = "sinkhorn"
    regularization: float = 0.1
    knowledge: float = 0.05
    presence: float = 10.0
    sharpness: float = 100.0

    def __post_init__(self) -> None:
        choose(TRANSPORTS, self.transport)
        for name, value, least in (
            ("regularization", self.regularization, "above 0"),
            ("knowledge", self.knowledge, "0 or more"),
            ("presence", self.presence, "0 or more"),
        ):
            if not (value > 0 or (value == 0 and least == "0 or more")):
                raise ConfigError(f"{name} must be {least}. Got {value}.")

    def plan(
        self,
        similarities: Tensor,
        frozen: Tensor | None = None,
        present: Tensor | None = None,
        *,
        max_steps: int = IN_USE,
    ) -> Plan:
        """Match the regions of each picture to its labels.

        Args:
            similarities: Cosines of regions and labels, ``(n, p, c)``.
            frozen: The same of a frozen model, whose plan is to be kept near; none without.
            present: True where the picture has the label, ``(n, c)``; goes with ``frozen``.
            max_steps: After how many steps a transport that takes steps gives up.
        """
        cost, spread = matching_cost(similarities, sharpness=self.sharpness), self.regularization
        if frozen is not None and present is not None and self.knowledge:
            cost, spread = constrained(
                cost,
                log_teacher(frozen, present, sharpness=self.sharpness),
                entropy_weight=self.regularization,
                teacher_weight=self.knowledge,
            )
        wanted = {"regularization": spread, "temperature": spread, "max_steps": max_steps}
        solve = TRANSPORTS[self.transport]
        options = {key: wanted[key] for key in wanted.keys() & settings(solve).keys()}
        n, _, c = cost.shape
        return solve(cost, self.weights(similarities), cost.new_full((n, c), 1 / c), **options)

    def weights(self, similarities: Tensor) -> Tensor:
        """How much each region counts, ``(n, p)``, sum 1 in each picture."""
        if self.presence:
            return label_presence(similarities, temperature=1 / self.presence)
        n, p, _ = similarities.shape
        return torch.full((n, p), 1 / p, dtype=torch.float32, device=similarities.device)

    def pooled(self, similarities: Tensor, plan: Plan | None = None) -> Tensor:
        """For each label the mean cosine of the regions that speak for it, ``(n, c)``.

        Raises:
            NotConverged: the plan did not converge.
        """
        plan = self._converged(self.plan(similarities)) if plan is None else plan
        return plan.apply(similarities) * similarities.shape[2]

    def shares(self, similarities: Tensor) -> Tensor:
        """How much each region speaks for a label, ``(n, p, c)``, sum 1 over the regions.

        Raises:
            NotConverged: the plan did not converge.
        """
        return self._converged(self.plan(similarities)).matrix * similarities.shape[2]

    def _converged(self, plan: Plan) -> Plan:
        """The plan, for use; what a plan on its own advises cannot be set here."""
        open_ones = int((~plan.converged).sum())
        if open_ones:
            raise NotConverged(
                f"Regions and names must be matched, and in {open_ones} of {len(plan.converged)} "
                f"pictures they were not in {int(plan.steps.max())} steps. Raise "
                f"method.regularization, which is {self.regularization:g}."
            )
        return plan
