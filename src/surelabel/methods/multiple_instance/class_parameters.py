"""Store a learned embedding, slope and bias for each label; new labels have shared values."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.errors import DataError

PARAMETERS = ("offsets", "log_slopes", "biases")  # one row per label of the fit


class ClassParameters(nn.Module):
    """Store a learned text offset, log slope and bias for each label of a fit.

    For a label without positive training images, and for a label that is added after the fit, all
    values are 0. The label then has the embedding of its text, the shared slope and the shared
    bias.

    Args:
        names: Labels, length c.
        width: Width of the text vectors (d).

    Attributes:
        fit_names: Labels of the fit, length k. Before ``use_fit_labels`` is called, ``names``.
        offsets: Differences of the class embeddings from the text vectors, ``(k, d)``.
        log_slopes: Natural logarithms of the relative slopes, ``(k,)``.
        biases: Biases in nats relative to the shared bias, ``(k,)``.
        has_positives: Whether there are positive training images of the label, ``(k,)``.
    """

    has_positives: Tensor

    def __init__(self, names: Sequence[str], width: int):
        super().__init__()
        self._names = self.fit_names = list(names)
        self.offsets = nn.Parameter(torch.zeros(len(names), width))
        self.log_slopes = nn.Parameter(torch.zeros(len(names)))
        self.biases = nn.Parameter(torch.zeros(len(names)))
        self.register_buffer("has_positives", torch.zeros(len(names), dtype=torch.bool))

    def use_fit_labels(self, names: Sequence[str]) -> None:
        """Set the labels of the fit, after the parameters of the fit were loaded.

        Raises:
            DataError: If the number of labels differs from that of the parameters.
        """
        if len(names) != len(self.offsets):
            raise DataError(
                f"The fit must have {len(self.offsets)} labels, one for each row of parameters; "
                f"got {len(names)}. Copy the folder of the recognizer again."
            )
        self.fit_names = list(names)

    def forward(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return text offsets ``(c, d)``, log slopes ``(c,)`` and biases ``(c,)``."""
        row_of = {
            name: row
            for row, (name, is_learned) in enumerate(
                zip(self.fit_names, self.has_positives.tolist(), strict=True)
            )
            if is_learned
        }
        device = self.offsets.device
        rows = torch.tensor([row_of.get(name, 0) for name in self._names], device=device)
        is_learned = torch.tensor([name in row_of for name in self._names], device=device)
        return (
            torch.where(is_learned[:, None], self.offsets[rows], 0.0),
            torch.where(is_learned, self.log_slopes[rows], 0.0),
            torch.where(is_learned, self.biases[rows], 0.0),
        )

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Load the parameters of any number of labels."""
        offsets = state.get(f"{prefix}offsets")
        if isinstance(offsets, Tensor) and offsets.shape[1:] == self.offsets.shape[1:]:
            for name in PARAMETERS:
                parameter = getattr(self, name)
                shape = (len(offsets), *parameter.shape[1:])
                setattr(self, name, nn.Parameter(parameter.new_empty(shape)))
            self.has_positives = self.has_positives.new_empty(len(offsets))
        super()._load_from_state_dict(state, prefix, *arguments)
