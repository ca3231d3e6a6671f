"""Store one learned vector for each label of a fit."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.errors import DataError


class ClassVectors(nn.Module):
    """Store one learned vector for each label of a fit; other labels have no learned vector.

    Args:
        names: Labels, length c.
        texts: Unit vectors of the labels, which initialize the learned vectors, ``(c, d)``.

    Attributes:
        fit_names: Labels of the fit, length k. Before ``use_fit_labels`` is called, ``names``.
        vectors: Learned vectors of the labels of the fit, ``(k, d)``.
    """

    def __init__(self, names: Sequence[str], texts: Tensor):
        super().__init__()
        self._names = self.fit_names = list(names)
        self.vectors = nn.Parameter(texts.clone())

    def use_fit_labels(self, names: Sequence[str]) -> None:
        """Set the labels of the fit, after the vectors of the fit were loaded.

        Raises:
            DataError: If the number of labels differs from that of the vectors.
        """
        if len(names) != len(self.vectors):
            raise DataError(
                f"The fit must have {len(self.vectors)} labels, one for each learned vector; got "
                f"{len(names)}. Copy the folder of the recognizer again."
            )
        self.fit_names = list(names)

    def forward(self, others: Tensor) -> Tensor:
        """Return one unit vector per label, ``(c, d)``.

        Args:
            others: Unit vectors for the labels that have no learned vector, ``(c, d)``.
        """
        vectors = nn.functional.normalize(self.vectors, dim=-1)
        if self.fit_names == self._names:
            return vectors
        row_of = {name: row for row, name in enumerate(self.fit_names)}
        rows = [
            vectors[row_of[name]] if name in row_of else other
            for name, other in zip(self._names, others, strict=True)
        ]
        return torch.stack(rows)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *arguments: Any) -> None:
        vectors = state.get(f"{prefix}vectors")
        if isinstance(vectors, Tensor) and vectors.shape[1:] == self.vectors.shape[1:]:
            self.vectors = nn.Parameter(torch.empty_like(vectors, device=self.vectors.device))
        super()._load_from_state_dict(state, prefix, *arguments)
