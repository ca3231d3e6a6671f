"""Project logits to a tree of labels in a graph."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.records import descendant_columns


class LabelTreeModule(nn.Module):
    """Compute the nearest logits in which no label is more probable than its parent.

    The module computes ``isotonic_logits`` in float32. The graph has one sort for each label with
    children.

    Args:
        parent_columns: Column of the parent of each label, or -1, length c.
    """

    def __init__(self, parent_columns: Sequence[int]):
        super().__init__()
        self.columns: list[int] = []
        for number, (column, descendants) in enumerate(descendant_columns(parent_columns)):
            self.columns.append(column)
            is_below = torch.zeros(len(parent_columns), dtype=torch.bool)
            is_below[torch.from_numpy(descendants)] = True
            counts = torch.arange(1, len(descendants) + 2, dtype=torch.float32)
            self.register_buffer(f"descendants{number}", torch.from_numpy(descendants))
            self.register_buffer(f"is_below{number}", is_below)
            self.register_buffer(f"is_column{number}", torch.arange(len(is_below)) == column)
            self.register_buffer(f"counts{number}", counts)

    def forward(self, logits: Tensor) -> Tensor:
        """Return projected log-odds, ``(n, c)``.

        Args:
            logits: Finite log-odds, ``(n, c)``, in float32.
        """
        for number, column in enumerate(self.columns):
            below = logits[:, self.get_buffer(f"descendants{number}")]
            top = logits[:, column : column + 1]
            ordered = torch.cat([top, below.sort(dim=1, descending=True).values], dim=1)
            means = ordered.cumsum(dim=1) / self.get_buffer(f"counts{number}")
            largest = torch.maximum(means.amax(dim=1, keepdim=True), top)
            limited = torch.where(
                self.get_buffer(f"is_below{number}"), torch.minimum(logits, largest), logits
            )
            is_violated = below.amax(dim=1, keepdim=True) > top
            is_raised = self.get_buffer(f"is_column{number}") & is_violated
            logits = torch.where(is_raised, largest, limited)
        return logits
