"""A transport plan in factors, so that sums over it need not build it."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from surelabel.errors import NotConverged
from surelabel.shapes import check_shapes

AT_ONCE = 2**26  # bytes of one product on an accelerator: 64 MiB, some dozens of pictures


@dataclass(frozen=True)
class Plan:
    """How much each region of a picture speaks for each label: ``left · kernel · right``.

    The parts are float32 or float64 and carry no gradient. A plan that did not converge says so
    and refuses to be used, until ``as_reached`` is called.

    Attributes:
        kernel: Not negative, ``(n, p, c)``.
        left: A factor for each region, ``(n, p)``.
        right: A factor for each label, ``(n, c)``.
        steps: How many steps each picture took, ``(n)``; 0 where the plan has a closed form.
        error: By how much the sums over labels miss the weights of the regions, added up over the
            regions of each picture, ``(n)``; 0 where the plan does not promise them.
        converged: True where the stopping rule was met, ``(n)``.
    """

    kernel: Tensor
    left: Tensor
    right: Tensor
    steps: Tensor
    error: Tensor
    converged: Tensor

    @classmethod
    def exact(cls, kernel: Tensor, left: Tensor, right: Tensor) -> "Plan":
        """A plan that took no steps."""
        nothing = left.new_zeros(len(left))
        return cls(kernel, left, right, nothing.int(), nothing, nothing == 0)

    def apply(self, values: Tensor) -> Tensor:
        """For each label the sum over regions of plan times value; the plan is not built.

        Args:
            values: One number a region and label, ``(n, p, c)``. Gradients flow to them.

        Returns:
            One number a label, ``(n, c)``, float32 or float64. A label's part of the plan sums to
            the weight of the label: divide by it for a mean.

        Raises:
            NotConverged: the plan did not converge.
            InputError: ``values`` has other axes than the plan.
        """
        check_shapes(kernel=(self.kernel, "n p c"), values=(values, "n p c"))
        self._check_converged()
        wide = torch.promote_types(values.dtype, self.kernel.dtype)
        summed = one_by_one if values.device.type == "cpu" else in_blocks
        with torch.autocast(values.device.type, enabled=False):
            return self.right * summed(self.left.to(wide), self.kernel, values.to(wide))

    @property
    def matrix(self) -> Tensor:
        """The plan itself, ``(n, p, c)``, built when asked for.

        Raises:
            NotConverged: the plan did not converge.
        """
        self._check_converged()
        return self.left[:, :, None] * self.kernel * self.right[:, None, :]

    def as_reached(self) -> "Plan":
        """The same plan for use as far as it came; ``error`` says how far that is."""
        return replace(self, converged=torch.ones_like(self.converged))

    def _check_converged(self) -> None:
        open_ones = int((~self.converged).sum())
        if open_ones:
            raise NotConverged(
                f"The plans of {open_ones} of {len(self.converged)} pictures must converge and did "
                f"not in {int(self.steps.max())} steps: the weights of regions are off by up to "
                f"{float(self.error.max()):.1e}. Raise max_steps, tolerance or regularization, or "
                "take plan.as_reached()."
            )


def one_by_one(left: Tensor, kernel: Tensor, values: Tensor) -> Tensor:
    """``Σ_i left_i · kernel_ij · value_ij``, ``(n, c)``; a picture's product stays in cache."""
    products = [a @ (k * v) for a, k, v in zip(left, kernel, values, strict=True)]
    return torch.stack(products) if products else values.sum(1)


def in_blocks(left: Tensor, kernel: Tensor, values: Tensor) -> Tensor:
    """The same for many pictures at a time, as an accelerator likes it, and memory allows."""
    bytes_each = values.element_size() * values.shape[1] * values.shape[2]
    parts = (part.split(max(1, AT_ONCE // bytes_each)) for part in (left, kernel, values))
    return torch.cat([(a[:, None] @ (k * v))[:, 0] for a, k, v in zip(*parts, strict=True)])
