"""Correlation of predictions over all pictures, present labels too."""

from torch import Tensor

from surelabel.records import Step
from surelabel.regularizers.covariance import Target, batch_of, correlation, mean_squared_gap


def class_correlation(
    step: Step, *, target: Target = "cosine", epsilon: float = 1e-6, least: int = 4
) -> Tensor:
    """Ask that predictions correlate as the names of the labels are alike.

    The formula of ``class_covariance`` with m = 1 at every known target, present or absent: what
    looking at absent labels alone is worth shows in the difference.

    Args:
        step: One training step, with texts.
        target: What the correlations are held against, as in ``class_covariance``.
        epsilon: Keeps labels whose predictions hardly vary near correlation 0, >= 0.
        least: A pair of labels known together in fewer pictures than this is left out.

    Returns:
        One number in [0, 4], ``()``, float32 at least; 0 where no pair is left.

    Raises:
        InputError: the step has no texts, or its parts differ in shape.
        ConfigError: ``target`` is not one of the three.

    Source:
        none; ours, a variant of ``class_covariance``.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> known = torch.ones(4, 2, dtype=torch.bool)
        >>> step = Step(scores, scores, torch.zeros(4, 2), known, texts=torch.eye(2))
        >>> class_correlation(step).round(decimals=4)
        tensor(0.3351)
    """
    batch = batch_of(step, target)
    together = correlation(batch.values.sigmoid(), batch.seen, batch.rows, epsilon)
    return mean_squared_gap(together, batch.alike, batch.seen.T @ batch.seen, least)
