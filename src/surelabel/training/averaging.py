"""An exponential mean of the weights that training passes through."""

from typing import Any

from torch import Tensor, nn

from surelabel.errors import ConfigError


class Average:
    """What a method has learnt, averaged over its steps.

        mean after t steps: Σ over s <= t of decay^(t - s) · weights after step s, divided by
                            Σ over s <= t of decay^(t - s)

    The weights before the first step have no share in it, so that a run of few steps does not stay
    near its beginning. Running statistics (buffers such as those of batch normalization) are
    averaged alike, as they describe the same steps; counters and what is frozen are left alone.

    Args:
        method: Before its first step.
        decay: Share that a step keeps when the next is made, in [0, 1); 0 is the last step alone.

    Raises:
        ConfigError: ``decay`` is out of its range.

    Source:
        Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, SIAM Journal on
        Control and Optimization, 1992; the division is that of Adam, Kingma and Ba, ICLR 2015,
        arXiv:1412.6980.
    """

    def __init__(self, method: nn.Module, decay: float):
        if not 0 <= decay < 1:
            raise ConfigError(f"averaging must be from 0 and below 1. Got {decay}.")
        self._method, self._decay, self._steps = method, decay, 0
        self._means = {
            name: value.clone()
            for name, value in _moving(method).items()
            if value.isfinite().all()  # a mask may not be, and has no mean
        }

    def move(self) -> None:
        """Take in the weights after a step."""
        self._steps += 1
        share = (1 - self._decay) / (1 - self._decay**self._steps)
        now = _moving(self._method)
        for name, mean in self._means.items():
            mean.lerp_(now[name], share)

    def put(self) -> None:
        """Give the method the mean instead of its weights."""
        now = _moving(self._method)
        for name, mean in self._means.items():
            now[name].copy_(mean)

    def state_dict(self) -> dict[str, Any]:
        """What a stopped run goes on from."""
        return {"steps": self._steps, "means": self._means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._steps = state["steps"]
        for name, mean in self._means.items():
            mean.copy_(state["means"][name])


def _moving(method: nn.Module) -> dict[str, Tensor]:
    """What steps may change: what is trained, and the buffers that are no counters."""
    trained = {name: p.detach() for name, p in method.named_parameters() if p.requires_grad}
    buffers = {name: b for name, b in method.named_buffers() if b.is_floating_point()}
    return trained | buffers
