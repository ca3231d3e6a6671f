"""Transport plan in factored form, so that weighted sums do not need the whole matrix."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from surelabel.errors import NotConverged
from surelabel.shapes import check_shapes

CPU_BYTES_PER_BLOCK = 2**20  # size of one product on a CPU, so that it fits into the cache
BYTES_PER_BLOCK = 2**26  # size of one product on an accelerator: 64 MiB, a few dozen images


@dataclass(frozen=True)
class TransportPlan:
    """Weight of each region i of an image for each label j: ``left_i · kernel_ij · right_j``.

    The factors are float32 or float64 and have no gradient. If a plan did not converge, ``apply``
    and ``matrix`` raise ``NotConverged``. To use the plan nevertheless,
    call ``accept_unconverged``, which returns a copy that is marked as converged.

    Attributes:
        kernel: Non-negative kernel of n images, p regions and c labels, ``(n, p, c)``.
        left: Scaling factor of each region, ``(n, p)``.
        right: Scaling factor of each label, ``(n, c)``.
        steps: Number of iterations of each image, ``(n,)``. If the plan has a closed form, the
            number is 0.
        error: Absolute error of the region marginal, summed over the regions of each image,
            ``(n,)``. If the region marginal is not constrained, the error is 0.
        converged: True for each image that met the stopping rule, ``(n,)``.
    """

    kernel: Tensor
    left: Tensor
    right: Tensor
    steps: Tensor
    error: Tensor
    converged: Tensor

    @classmethod
    def closed_form(cls, kernel: Tensor, left: Tensor, right: Tensor) -> "TransportPlan":
        """Return a plan with the given factors, which is marked as converged after 0 steps."""
        zeros = left.new_zeros(len(left))
        return cls(kernel, left, right, zeros.int(), zeros, zeros == 0)

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
        """Matrix of the plan, ``(n, p, c)``, computed at each access.

        Raises:
            NotConverged: If the plan did not converge.
        """
        self._check_converged()
        return self.left[:, :, None] * self.kernel * self.right[:, None, :]

    def accept_unconverged(self) -> "TransportPlan":
        """Return a copy of the plan that is marked as converged, with unchanged ``error``."""
        return replace(self, converged=torch.ones_like(self.converged))

    def _check_converged(self) -> None:
        n_unconverged = int((~self.converged).sum())
        if n_unconverged:
            raise NotConverged(
                f"The transport plans of {n_unconverged} of {len(self.converged)} images did not "
                f"converge in {int(self.steps.max())} steps; the error of the region marginal is "
                f"up to {float(self.error.max()):.1e}. Raise max_steps, tolerance or "
                "regularization, or use plan.accept_unconverged()."
            )


def sum_transport_plan(left: Tensor, kernel: Tensor, values: Tensor) -> Tensor:
    """Return ``Σ_i left_i · kernel_ij · value_ij`` over the regions i for each label j, ``(n, c)``.

    The sum is computed in blocks of images. On a CPU, the product of a block fits into the cache.
    """
    bytes_per_block = CPU_BYTES_PER_BLOCK if values.device.type == "cpu" else BYTES_PER_BLOCK
    bytes_per_image = values.element_size() * values.shape[1] * values.shape[2]
    images = max(1, bytes_per_block // max(1, bytes_per_image))
    blocks = zip(*(factor.split(images) for factor in (left, kernel, values)), strict=True)
    return torch.cat([(a[:, None] @ (k * v))[:, 0] for a, k, v in blocks])
