"""Target smoothing as in Platt scaling."""

from surelabel.arrays import Array
from surelabel.mapped_arrays import to_mapped_array


def smooth_targets(y: Array) -> Array:
    """Return targets smoothed as in Platt scaling, which avoids probabilities of 0 and 1.

    With P positive and N negative targets, a target of 1 becomes (P + 1) / (P + 2), and a target of
    0 becomes 1 / (N + 2). Targets between 0 and 1 are interpolated linearly.
    """
    positives = y.sum()
    high, low = (positives + 1) / (positives + 2), 1 / (y.size - positives + 2)
    smoothed = (high - low) * y
    smoothed += low
    return to_mapped_array(smoothed)
