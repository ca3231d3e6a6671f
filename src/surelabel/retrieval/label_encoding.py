"""Encode the log-odds and raw scores of one label as sort keys, with one of four encodings.

A calibrator computes the log-odds of a label from its raw score. Only the log-odds, or only the raw
scores, are stored if the others follow from them or have no effect on a search. There are four
encodings:

- ``logits``: The keys are the log-odds, which are also the raw scores.
- ``steps``: The keys are the raw scores. The log-odds are a nondecreasing step function of the raw
  score, such as that of isotonic regression, and the table of its steps is stored.
- ``scores``: The keys are the log-odds, and the raw scores are also stored.
- ``unscored``: The keys are the log-odds, and the raw scores are not stored. This encoding is for
    unknown raw scores, and for many images of which only few have equal log-odds. These images have
    almost equal raw scores, whose log-odds float32 rounds to one value.

Images of equal log-odds are sorted by raw score, except with the encoding ``unscored``.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.sort_keys import (
    Floats32,
    SortKeys,
    floats_of_sort_keys,
    sort_keys_of_floats,
)

MAX_STEPS = 1 << 16  # steps in the step table of one label
SMALL_SHARD_ROWS = 1 << 16  # up to this number of rows, raw scores are always stored
MAX_ROUNDED_SCORES = 64  # distinct raw scores whose log-odds float32 rounds to the same value


@dataclass(frozen=True)
class StepTable:
    """Nondecreasing step function from raw scores to log-odds, with at least one step.

    Attributes:
        scores: Lowest raw score of each step, increasing, float32, ``(s,)``.
        logits: Log-odds of each step, increasing, float32, ``(s,)``.
    """

    scores: Floats32
    logits: Floats32

    def logits_of_scores(self, scores: Floats32) -> Floats32:
        """Return the log-odds of raw scores, none of which is below the first step."""
        steps = np.searchsorted(self.scores, scores, side="right") - 1
        return self.logits[steps]

    def lowest_score(self, logit: np.float32) -> float:
        """Return the lowest raw score whose log-odds are at least ``logit``, or infinity."""
        step = int(np.searchsorted(self.logits, logit))
        return float(self.scores[step]) if step < len(self.scores) else np.inf

    def score_above(self, logit: np.float32) -> float:
        """Return the lowest raw score whose log-odds exceed ``logit``, or infinity."""
        step = int(np.searchsorted(self.logits, logit, side="right"))
        return float(self.scores[step]) if step < len(self.scores) else np.inf


def describe_step_table_damage(steps: StepTable, lowest_score: np.float32) -> str | None:
    """Return why a step table is invalid, as a clause, or None if it is valid.

    Args:
        steps: Step table that was read from a file, with at least one step.
        lowest_score: Lowest raw score to which the table is applied.

    Example:
        >>> steps = StepTable(np.array([0, 1], np.float32), np.array([-2, 3], np.float32))
        >>> describe_step_table_damage(steps, np.float32(-1))
        'the score of the first step must be at most the lowest raw score, -1; got 0'
    """
    for name, values in (("scores", steps.scores), ("log-odds", steps.logits)):
        if not np.isfinite(values).all():
            return f"the {name} of a step table must be finite"
        if not (values[1:] > values[:-1]).all():
            return f"the {name} of a step table must be increasing"
    if steps.scores[0] > lowest_score:
        return (
            f"the score of the first step must be at most the lowest raw score, {lowest_score:g}; "
            f"got {steps.scores[0]:g}"
        )
    return None


@dataclass(frozen=True)
class EncodedLabel:
    """Encoded log-odds and raw scores of one label.

    Attributes:
        keys: Sort keys of the log-odds, or of the raw scores if there is a step table, ``(n,)``.
        steps: Step table from raw scores to log-odds. If the keys are the log-odds, the value is
            None.
        scores: Raw scores, ``(n,)``. If they are not stored separately, the value is None.
        has_scores: Whether the raw scores can be decoded.
    """

    keys: SortKeys
    steps: StepTable | None = None
    scores: Floats32 | None = None
    has_scores: bool = True


def encode_label(logits: Floats32, scores: Floats32 | None) -> EncodedLabel:
    """Encode the log-odds and raw scores of a label with the smallest suitable encoding.

    The log-odds can be decoded without an error. The raw scores can too, except with the encoding
    ``unscored``.

    Args:
        logits: Log-odds, finite, ``(n,)``.
        scores: Raw scores, finite, ``(n,)``, or None if they are unknown.

    Example:
        >>> scores = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
        >>> encode_label(np.array([-1, -1, 2, 2], np.float32), scores).steps.scores.tolist()
        [0.10000000149011612, 0.30000001192092896]
    """
    logit_keys = sort_keys_of_floats(logits)
    if scores is None:
        return EncodedLabel(logit_keys, has_scores=False)
    if np.array_equal(logits, scores):
        return EncodedLabel(logit_keys)
    score_keys = sort_keys_of_floats(scores)
    pairs = np.sort((logit_keys.astype(np.uint64) << np.uint64(32)) | score_keys)
    steps = _step_table_of_sorted_pairs(pairs)
    if steps is not None and len(steps.scores) <= len(pairs) // 2:
        return EncodedLabel(score_keys, steps)
    if len(pairs) > SMALL_SHARD_ROWS and _max_scores_of_equal_logits(pairs) <= MAX_ROUNDED_SCORES:
        return EncodedLabel(logit_keys, has_scores=False)
    return EncodedLabel(logit_keys, scores=np.asarray(scores, np.float32))


def _step_table_of_sorted_pairs(pairs: npt.NDArray[np.uint64]) -> StepTable | None:
    """Return the step table of pairs, or None if there is no table of at most ``MAX_STEPS`` steps.

    Args:
        pairs: Keys of the log-odds in the high 32 bits and of the raw scores in the low 32 bits,
            sorted, ``(n,)``.
    """
    logit_keys, score_keys = _split_sorted_pairs(pairs)
    starts_step = np.append(True, logit_keys[1:] != logit_keys[:-1])
    if np.count_nonzero(starts_step) > MAX_STEPS:
        return None
    is_equal_score = score_keys[1:] == score_keys[:-1]
    if (score_keys[1:] < score_keys[:-1]).any() or (is_equal_score & starts_step[1:]).any():
        return None
    return StepTable(
        floats_of_sort_keys(score_keys[starts_step]), floats_of_sort_keys(logit_keys[starts_step])
    )


def _max_scores_of_equal_logits(pairs: npt.NDArray[np.uint64]) -> int:
    """Return the maximum number of distinct raw scores with equal log-odds."""
    logit_keys, _ = _split_sorted_pairs(pairs[np.append(True, pairs[1:] != pairs[:-1])])
    starts = np.flatnonzero(np.append(True, logit_keys[1:] != logit_keys[:-1]))
    return int(np.diff(starts, append=len(logit_keys)).max())


def _split_sorted_pairs(pairs: npt.NDArray[np.uint64]) -> tuple[SortKeys, SortKeys]:
    return (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
