"""Smooth targets as in Platt scaling."""

from surelabel.arrays import Array


def smooth_targets(y: Array) -> Array:
    """Return targets smoothed as in Platt scaling, which avoids probabilities of 0 and 1.

    With P positive and N negative targets, a target of 1 becomes (P + 1) / (P + 2), and a target of
    0 becomes 1 / (N + 2). Targets between 0 and 1 are interpolated linearly.
    """
    return interpolate_smoothed_targets(y, *smoothed_target_levels(y))


def smoothed_target_levels(y: Array) -> tuple[float, float]:
    """Return the smoothed values of a target of 0 and of a target of 1."""
    positives = float(y.sum())
    return 1 / (y.size - positives + 2), (positives + 1) / (positives + 2)


def interpolate_smoothed_targets(y: Array, low: float, high: float) -> Array:
    """Return smoothed targets, interpolated between the smoothed values of 0 and 1.

    Args:
        y: Targets in [0, 1].
        low: Smoothed value of a target of 0.
        high: Smoothed value of a target of 1.
    """
    smoothed: Array = (high - low) * y
    smoothed += low
    return smoothed
