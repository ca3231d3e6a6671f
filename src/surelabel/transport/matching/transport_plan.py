"""Store a transport plan in factored form, so that weighted sums do not need the whole matrix."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from surelabel.counts import format_count
from surelabel.errors import ConfigError, NotConverged
from surelabel.shapes import check_shapes

CPU_BYTES_PER_BLOCK = 2**20  # size of one product on a CPU, so that it fits into the cache
BYTES_PER_BLOCK = 2**26  # size of one product on an accelerator: 64 MiB, a few dozen images


@dataclass(frozen=True)
class TransportPlan:
    """Weight of each region i for each label j, in the form ``left_i · kernel_ij · right_j``.

    The factors are float32 or float64 and have no gradient. If a plan did not converge, ``apply``
    and ``matrix`` raise ``NotConverged``. To use the plan nevertheless, call
    ``accept_unconverged``, which returns a copy that is marked as converged.

    Attributes:
        kernel: Non-negative kernel of n images, p regions and c labels, ``(n, p, c)``.
        left: Scaling factor of each region, ``(n, p)``.
        right: Scaling factor of each label, ``(n, c)``.
        steps: Number of iterations of each image, ``(n,)``. If the plan has a closed form, the
            number is 0.
        error: Absolute error of the region marginal, summed over the regions of each image,
            ``(n,)``. If the region marginal is not constrained, the error is 0.
        converged: True for each image that met the stopping rule, ``(n,)``.
        region_potentials: Logarithms of the scaling factors of the regions in nats, ``(n, p)``,
            relative to the kernel exp(-cost / regularization). Each column of the plan is
            proportional to exp(potential - cost / regularization). If the columns have no such
            form, the potentials are None.
        regularization: Regularization of the potentials, > 0, in units of cost. If the plan does
            not depend on the cost, the value is infinite.
    """

    kernel: Tensor
    left: Tensor
    right: Tensor
    steps: Tensor
    error: Tensor
    converged: Tensor
    region_potentials: Tensor | None = None
    regularization: float = math.inf

    @classmethod
    def closed_form(
        cls,
        kernel: Tensor,
        left: Tensor,
        right: Tensor,
        *,
        region_potentials: Tensor | None = None,
        regularization: float = math.inf,
    ) -> "TransportPlan":
        """Return a plan with the given factors, which is marked as converged after 0 steps."""
        zeros = left.new_zeros(left.shape[0])
        status = (zeros.int(), zeros, zeros == 0)
        return cls(kernel, left, right, *status, region_potentials, regularization)

    def apply(self, values: Tensor) -> Tensor:
        """Return the sum over regions of plan weight times value, for each label.

        The sum is computed from the factors, without the matrix of the plan.

        Args:
            values: Value of each region for each label, ``(n, p, c)``. Gradients are propagated
                to the values.

        Returns:
            Weighted sums, ``(n, c)``, float32 or float64. For a weighted mean, divide the weighted
            sum of each label by the weight of the label.

        Raises:
            NotConverged: If the plan did not converge.
            InputError: If the axes of ``values`` differ from the axes of the plan.
        """
        check_shapes(kernel=(self.kernel, "n p c"), values=(values, "n p c"))
        self._check_converged()
        dtype = torch.promote_types(values.dtype, self.kernel.dtype)
        with torch.autocast(values.device.type, enabled=False):
            return self.right * sum_transport_plan(
                self.left.to(dtype), self.kernel, values.to(dtype)
            )

    @property
    def matrix(self) -> Tensor:
        """Return the matrix of the plan, ``(n, p, c)``, which is computed at each access.

        Raises:
            NotConverged: If the plan did not converge.
        """
        self._check_converged()
        return self.left[:, :, None] * self.kernel * self.right[:, None, :]

    def column_shares(self, cost: Tensor) -> Tensor:
        """Return the fraction of each region in the column of any label, including new labels.

            P_ij / v_j = softmax over regions (f_i - C_ij / regularization)

        In this formula, P is the plan, v_j is the weight of label j, f_i is the potential of region
        i, and C is the cost. For a label of the plan, the result is the column of the label,
        divided by the weight of the label. For a new label, the result extends the plan without a
        change of the other columns.

        Args:
            cost: Cost of each region for each label (C), ``(n, p, c)``. The labels may differ from
                the labels of the plan.

        Returns:
            Fractions that sum to 1 over the regions, ``(n, p, c)``, without gradient.

        Raises:
            NotConverged: If the plan did not converge.
            ConfigError: If the plan has no potentials, such as a plan of ``bipartite``.

        Source:
            Pooladian and Niles-Weed, Entropic estimation of optimal transport maps, 2021,
            arXiv:2109.12004, section 3 (extension of entropic potentials).
        """
        self._check_converged()
        if self.region_potentials is None:
            raise ConfigError(
                "column_shares requires a plan with region_potentials; got a plan without them. "
                "Use sinkhorn, softmax or average."
            )
        with torch.no_grad(), torch.autocast(cost.device.type, enabled=False):
            logits = self.region_potentials[:, :, None] - cost / self.regularization
            return logits.softmax(1).to(self.kernel.dtype)

    def accept_unconverged(self) -> "TransportPlan":
        """Return a copy of the plan that is marked as converged, with unchanged ``error``."""
        return replace(self, converged=torch.ones_like(self.converged))

    def _check_converged(self) -> None:
        if torch.compiler.is_exporting():
            return  # values do not exist while the computation is recorded
        n_unconverged = int((~self.converged).sum())
        if n_unconverged:
            raise NotConverged(
                f"The transport plans of {n_unconverged} of "
                f"{format_count(len(self.converged), 'image')} did not converge in "
                f"{int(self.steps.max())} steps; the error of the region marginal is up to "
                f"{float(self.error.max()):.1e}. Raise max_steps, tolerance or regularization, or "
                "use plan.accept_unconverged()."
            )


def sum_transport_plan(left: Tensor, kernel: Tensor, values: Tensor) -> Tensor:
    """Return ``Σ_i left_i · kernel_ij · value_ij`` over the regions i for each label j, ``(n, c)``.

    The sum is computed in blocks of images. On a CPU, the product of a block fits into the cache.
    While ``torch.export`` records the computation, all images are one block.
    """
    if torch.compiler.is_exporting():
        return (left[:, None] @ (kernel * values))[:, 0]
    bytes_per_block = CPU_BYTES_PER_BLOCK if values.device.type == "cpu" else BYTES_PER_BLOCK
    bytes_per_image = values.element_size() * values.shape[1] * values.shape[2]
    images = max(1, bytes_per_block // max(1, bytes_per_image))
    blocks = zip(*(factor.split(images) for factor in (left, kernel, values)), strict=True)
    return torch.cat([(a[:, None] @ (k * v))[:, 0] for a, k, v in blocks])
