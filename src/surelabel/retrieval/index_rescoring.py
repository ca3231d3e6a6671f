"""Compute new log-odds of indexed images from their stored image vectors or raw scores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.mapped_arrays import mapped_zeros
from surelabel.retrieval.index_manifest import IndexRecognizer
from surelabel.retrieval.ingestion import (
    check_label_names_for_ingestion,
    check_values_for_ingestion,
)
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shards import Shard

ScoreVectors = Callable[
    [npt.NDArray[np.float16]], tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
]
CalibrateScores = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
BLOCK_ROWS = 1 << 14  # rows of raw scores that are calibrated at once


@dataclass(frozen=True)
class IndexScoring:
    """Labels of an index, and functions that compute their log-odds from image vectors or scores.

    Attributes:
        names: Label names, length c.
        model: Fingerprint of the recognizer.
        calibration: Description of the calibration of the log-odds.
        score: Function that returns the log-odds and the raw scores, both float32, ``(n, c)``, of n
            image vectors, float16, ``(n, d)``.
        calibrate: Function that returns the log-odds of raw scores, both ``(n, c)``, for an index
            without image vectors. If None, the raw scores of the index cannot be used.
        recognizer: Name and labels of the recognizer. If None, no recognizer is recorded.

    Raises:
        InputError: If there is no label name, or a name is empty or occurs twice.
    """

    names: Sequence[str]
    model: str
    calibration: str
    score: ScoreVectors
    calibrate: CalibrateScores | None = None
    recognizer: IndexRecognizer | None = None

    def __post_init__(self) -> None:
        check_label_names_for_ingestion(tuple(self.names))


def rescored_rows(shard: Shard, scoring: IndexScoring) -> ShardRows:
    """Return the rows of a shard with new log-odds and raw scores, without removed rows.

    The log-odds and raw scores are in temporary files in the folder of the shard, not in memory.

    Args:
        shard: Shard of an index.
        scoring: New labels and the functions that compute their log-odds.

    Raises:
        InputError: If the shard has neither image vectors nor raw scores of all labels, a logit is
            outside [-40, 40], or a score is not finite.
        DataError: If the shard is damaged.
    """
    if shard.feature_width is None:
        blocks = _calibrated_blocks(shard, scoring)
    else:
        blocks = (scoring.score(vectors) for vectors in shard.active_feature_blocks())
    shape = (len(scoring.names), len(shard))
    logits, scores = (mapped_zeros(shape, np.float32, folder=shard.folder) for _ in range(2))
    start = 0
    for block_logits, block_scores in blocks:
        stop = start + len(block_logits)
        rows = [f"image {row}" for row in range(start, stop)]
        check_values_for_ingestion(block_logits, block_scores, rows, scoring.names)
        logits[:, start:stop], scores[:, start:stop] = block_logits.T, block_scores.T
        start = stop
    return ShardRows(
        shard.active_file_states,
        len(scoring.names),
        shard.feature_width,
        lambda column: (logits[column], scores[column]),
        shard.active_feature_blocks,
    )


def _calibrated_blocks(
    shard: Shard, scoring: IndexScoring
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """Yield new log-odds and the stored raw scores of blocks of active rows, both ``(b, c)``."""
    if scoring.calibrate is None or shard.layout.unscored_columns:
        required = "image vectors"
        if scoring.calibrate is not None:
            required += " or raw scores of all labels"
        if shard.drop_below is not None:
            raise InputError(
                f"New log-odds can be computed only from {required}; {shard.folder} was written in "
                f"sparse form (--drop-below {shard.drop_below:g}), which stores no raw scores. "
                "Build the index again (`surelabel index`)."
            )
        raise InputError(
            f"New log-odds can be computed only from {required}; {shard.folder} does not contain "
            f"{required}. Build the index again (`surelabel index`)."
        )
    rows = shard.active_rows()
    lines = mapped_zeros((rows.n_labels, len(rows)), np.float32, folder=shard.folder)
    for column in range(rows.n_labels):
        lines[column] = rows.read_label(column)[1]
    for start in range(0, len(rows), BLOCK_ROWS):
        scores = np.ascontiguousarray(lines[:, start : start + BLOCK_ROWS].T)
        yield scoring.calibrate(scores), scores
