"""Second moment of the confidence that labels are absent."""

from torch import Tensor

from surelabel.records import Step
from surelabel.regularizers.covariance import Target, batch_of, mean_squared_gap, normalised


def class_second_moment(
    step: Step, *, target: Target = "cosine", epsilon: float = 1e-6, least: int = 4
) -> Tensor:
    """Ask that confidences in absence go together, means included, as the names are alike.

        m = 1 - y,  q = 1 - p,  C_ij = Σ m_i m_j q_i q_j / n

    brought to the diagonal 1 and compared as in ``class_covariance``. It lies in [0, 1], as
    cosines of names mostly do, but confident absence makes every entry nearly 1 and the pull weak.

    Args:
        step: One training step, with texts.
        target: What the moments are held against, as in ``class_covariance``.
        epsilon: Added to the diagonal before the root, >= 0.
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
        >>> class_second_moment(step).round(decimals=4)
        tensor(0.9904)
    """
    batch = batch_of(step, target)
    confidence = batch.inactive * (-batch.values).sigmoid()
    together = normalised(confidence.T @ confidence / batch.rows, epsilon)
    shared = batch.inactive.T @ batch.inactive
    return mean_squared_gap(together, batch.alike, shared, least)
