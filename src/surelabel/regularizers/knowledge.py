"""Penalize the distance of learned text vectors of the labels from the frozen text vectors."""

from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.records import TrainingStep
from surelabel.shapes import check_shapes


def knowledge(step: TrainingStep) -> Tensor:
    """Penalize learned text vectors that differ from those of the frozen text tower.

        1 - mean over labels of cos(t_c, t⁰_c)

    In this formula, t_c is the text vector of label c from the learned prompts. t⁰_c is the text
    vector of "a photo of a c." from the frozen text tower.

    Args:
        step: Training step of a method with learned prompts in the text tower, such as ``coop``.
            All text vectors of the step have length 1.

    Returns:
        Scalar loss in [0, 2], ``()``, in float32 or a wider type.

    Raises:
        ConfigError: If the method has no learned prompts in the text tower.
        InputError: If the learned and the frozen text vectors differ in shape.

    Source:
        Yao et al., Visual-Language Prompt Tuning with Knowledge-Guided Context Optimization,
        CVPR 2023, arXiv:2303.13283, eq. 5.

    Differs:
        The paper states the squared Euclidean distance of the vectors. Here, as in the authors'
        code, the distance is one minus the cosine, which is half the squared distance of unit
        vectors.

    Example:
        >>> import torch
        >>> targets, known = torch.zeros(4, 2), torch.ones(4, 2, dtype=torch.bool)
        >>> step = TrainingStep(
        ...     targets, None, targets, known, texts=torch.eye(2), tuned_texts=torch.eye(2).flip(0)
        ... )
        >>> knowledge(step)
        tensor(1.)
    """
    if step.tuned_texts is None or step.texts is None:
        raise ConfigError(
            "The regularizer knowledge needs a method with learned prompts in the text tower; got "
            "a method without learned prompts. Use method.name=coop, or another regularizer."
        )
    check_shapes(tuned_texts=(step.tuned_texts, "c d"), texts=(step.texts, "c d"))
    return 1 - (step.tuned_texts * step.texts.to(step.tuned_texts)).sum(dim=1).mean()
