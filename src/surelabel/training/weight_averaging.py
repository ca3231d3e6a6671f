"""Compute the exponential moving average of the weights during training."""

from typing import Any

from torch import Tensor, nn

from surelabel.errors import ConfigError


class WeightAverage:
    """Bias-corrected exponential moving average of the weights of a method.

        mean after t steps: Σ over s <= t of decay^(t - s) · weights after step s, divided by
                            Σ over s <= t of decay^(t - s)

    Here s and t are numbers of optimizer steps, starting at 1. The initial weights are not part of
    the average, because they would dominate the average of a short run. Floating-point buffers,
    such as the running statistics of batch normalization, are averaged as well. Integer buffers,
    frozen parameters, and tensors with an infinite or NaN element are not averaged.

    Args:
        method: Method before the first optimizer step.
        decay: Factor in [0, 1) by which each step multiplies the contribution of all earlier steps.
            If 0, the average equals the weights after the last step.

    Raises:
        ConfigError: If ``decay`` is out of range.

    Source:
        Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, SIAM Journal on
        Control and Optimization, 1992; the division is the bias correction of Adam, Kingma and Ba,
        ICLR 2015, arXiv:1412.6980.
    """

    def __init__(self, method: nn.Module, decay: float):
        if not 0 <= decay < 1:
            raise ConfigError(f"ema_decay must be in [0, 1); got {decay}.")
        self._method, self._decay, self._steps = method, decay, 0
        self._means = {
            name: value.clone()
            for name, value in _weight_averaging_tensors(method).items()
            if value.isfinite().all()  # masks can contain -inf
        }

    def update(self) -> None:
        """Update the average with the weights after an optimizer step."""
        self._steps += 1
        share = (1 - self._decay) / (1 - self._decay**self._steps)
        current = _weight_averaging_tensors(self._method)
        for name, mean in self._means.items():
            mean.lerp_(current[name], share)

    def copy_to_method(self) -> None:
        """Replace the weights of the method by the average."""
        current = _weight_averaging_tensors(self._method)
        for name, mean in self._means.items():
            current[name].copy_(mean)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and the averages."""
        return {"steps": self._steps, "means": self._means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the number of steps and the averages."""
        self._steps = state["steps"]
        for name, mean in self._means.items():
            mean.copy_(state["means"][name])


def _weight_averaging_tensors(method: nn.Module) -> dict[str, Tensor]:
    """Return trainable parameters and floating-point buffers, which training steps change."""
    trained = {name: p.detach() for name, p in method.named_parameters() if p.requires_grad}
    buffers = {name: b for name, b in method.named_buffers() if b.is_floating_point()}
    return trained | buffers
