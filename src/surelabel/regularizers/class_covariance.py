"""Class-wise covariance: how absent labels move together against how alike their names are."""

from torch import Tensor

from surelabel.records import Step
from surelabel.regularizers.covariance import Target, batch_of, correlation, mean_squared_gap


def class_covariance(
    step: Step, *, target: Target = "cosine", epsilon: float = 1e-6, least: int = 4
) -> Tensor:
    """Ask that predictions for absent labels correlate as the names of the labels are alike.

        m = 1 - y,  mu_c = Σ m·p / Σ m,  a = m · (p - mu),  C = aᵀ a / n
        R_ij = C_ij / (sqrt(C_ii + epsilon) · sqrt(C_jj + epsilon))
        mean over pairs i != j of (R_ij - S_ij)²

    p is the sigmoid of the log-odds, or of the scores where the loss has no strict link; S are
    the cosines of the names' vectors. The more pictures in a batch the better: with n of them the
    rank of C is below n. Time and memory grow with c².

    Args:
        step: One training step, with texts.
        target: "cosine" as it is; "centered", after the mean vector of the names is taken off, so
            that it may be negative as a correlation may; "minmax", stretched to range over [0, 1].
        epsilon: Keeps labels whose predictions hardly vary near correlation 0, >= 0.
        least: A pair of labels absent together in fewer pictures than this is left out.

    Returns:
        One number in [0, 4], ``()``, float32 at least; 0 where no pair is left.

    Raises:
        InputError: the step has no texts, or its parts differ in shape.
        ConfigError: ``target`` is not one of the three.

    Source:
        Zhou et al., Rethinking BCE Loss for Multi-Label Image Recognition with Fine-Tuning,
        CVPR 2026: jointly inactive pairs, covariance brought to correlation, squared Frobenius
        distance to the similarity of zero-shot texts. We could read its supplement only, which
        has no formula of the raw covariance: this one is ours, chosen because it is positive
        semi-definite, so that R is a correlation.

    Differs:
        The mean over pairs, not the sum, which is c · (c - 1) times as large and drowns a loss
        that is itself a mean; the diagonal is left out. Unknown targets take no part.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[-3.0, -2.0], [-1.0, -1.0], [-2.0, -3.0], [-1.0, -2.0]])
        >>> absent = torch.zeros(4, 2)
        >>> step = Step(scores, scores, absent, absent == 0, texts=torch.eye(2))
        >>> class_covariance(step).round(decimals=4)
        tensor(0.3351)
    """
    batch = batch_of(step, target)
    together = correlation(batch.values.sigmoid(), batch.inactive, batch.rows, epsilon)
    shared = batch.inactive.T @ batch.inactive
    return mean_squared_gap(together, batch.alike, shared, least)
