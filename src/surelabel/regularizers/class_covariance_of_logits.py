"""Class-wise covariance of log-odds, which pull on predictions near 0 as well."""

from torch import Tensor

from surelabel.records import Step
from surelabel.regularizers.covariance import Target, batch_of, correlation, mean_squared_gap


def class_covariance_of_logits(
    step: Step, *, target: Target = "cosine", epsilon: float = 1e-6, least: int = 4
) -> Tensor:
    """Ask that log-odds of absent labels correlate as the names of the labels are alike.

    The formula of ``class_covariance`` with the log-odds themselves, or the scores where the loss
    has no strict link, in the place of p: predictions near 0 or 1 keep their pull.

    Args:
        step: One training step, with texts.
        target: What the correlations are held against, as in ``class_covariance``.
        epsilon: Keeps labels whose log-odds hardly vary near correlation 0, >= 0.
        least: A pair of labels absent together in fewer pictures than this is left out.

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
        >>> absent = torch.zeros(4, 2)
        >>> step = Step(scores, scores, absent, absent == 0, texts=torch.eye(2))
        >>> class_covariance_of_logits(step).round(decimals=4)
        tensor(0.1818)
    """
    batch = batch_of(step, target)
    together = correlation(batch.values, batch.inactive, batch.rows, epsilon)
    shared = batch.inactive.T @ batch.inactive
    return mean_squared_gap(together, batch.alike, shared, least)
