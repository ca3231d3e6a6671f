"""Define rows that are written to a new shard: new predictions, or rows of another shard."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LabelLine = npt.NDArray[np.float32]
LabelValues = tuple[LabelLine, LabelLine | None]  # log-odds, and raw scores if they are stored


@dataclass(frozen=True)
class ShardRows:
    """Rows to be written to a shard, whose arrays are read part by part to save memory.

    Attributes:
        file_states: Stored path and file state of each image, ``n`` rows.
        n_labels: Number of labels, c.
        feature_width: Width of the image features, d. If no features are stored, the value is None.
        read_label: Function that returns the log-odds and the raw scores of one label, each
            ``(n,)``. Its argument is the column of the label. If raw scores are not stored, they
            are None.
        read_features: Function that returns blocks of image features, with ``n`` rows in total.
        drop_below: Probability below which log-odds were replaced in a sparse form. If no log-odds
            were replaced, the value is None.
        is_sparse: Whether the rows are read from a shard in sparse form.
    """

    file_states: pa.Table
    n_labels: int
    feature_width: int | None
    read_label: Callable[[int], LabelValues]
    read_features: Callable[[], Iterable[npt.NDArray[np.float16]]]
    drop_below: float | None = None
    is_sparse: bool = False

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
        return cls(
            file_states,
            len(logits),
            None if features is None else features.shape[1],
            lambda column: (logits[column], scores[column]),
            lambda: [] if features is None else [features],
        )
