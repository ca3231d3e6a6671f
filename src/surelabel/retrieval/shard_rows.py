"""Rows that are written to a new shard: new predictions, or the rows of an existing shard."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LabelLine = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ShardRows:
    """Rows to be written to a shard, whose arrays are read part by part to save memory.

    Attributes:
        file_states: Stored path and file state of each image, ``n`` rows.
        n_labels: Number of labels, c.
        feature_width: Width of the image features, d. If no features are stored, the value is None.
        read_label: Function that returns the ``logits`` or ``scores`` of one label, ``(n,)``. Its
            arguments are the name of the array and the column of the label.
        read_features: Function that returns blocks of image features, of ``n`` rows in all.
    """

    file_states: pa.Table
    n_labels: int
    feature_width: int | None
    read_label: Callable[[str, int], LabelLine]
    read_features: Callable[[], Iterable[npt.NDArray[np.float16]]]

    def __len__(self) -> int:
        return int(self.file_states.num_rows)

    @classmethod
    def from_arrays(
        cls,
        file_states: pa.Table,
        logits: npt.NDArray[np.float32],
        scores: npt.NDArray[np.float32],
        features: npt.NDArray[np.float16] | None,
    ) -> "ShardRows":
        """Create rows from arrays in memory.

        Args:
            file_states: Stored path and file state of each image, ``n`` rows.
            logits: Log-odds, ``(c, n)``.
            scores: Raw scores, ``(c, n)``.
            features: Image features, ``(n, d)``. If None, no features are stored.
        """
        arrays = {"logits": logits, "scores": scores}
        return cls(
            file_states,
            len(logits),
            None if features is None else features.shape[1],
            lambda name, column: arrays[name][column],
            lambda: [] if features is None else [features],
        )
