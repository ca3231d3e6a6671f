"""What was learnt of a name counts as much as there was to learn from; the rest is its text."""

from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes

SMALLEST = 1e-5  # a deviation below is rounding: texts that are all the same say nothing


def leaning(
    slopes: Tensor,
    levels: Tensor,
    texts: Tensor,
    vectors: Tensor,
    pictures: Tensor,
    *,
    trust: float = 20.0,
) -> tuple[Tensor, Tensor]:
    """Mix learnt scores with cosines, both in deviations over the same vectors.

        h_c = (1 - k_c) · (cos(x, t_c) - mean) / sd + k_c · g_c(x) / sd(g)
        k_c = m_c / (m_c + trust)

    Args:
        slopes: Of the learnt scores g, less their mean over the classes with pictures, ``(c, d)``.
        levels: The same, ``(c,)``.
        texts: Unit vectors, ``(c, d)``.
        vectors: Over which both deviate, ``(m, d)``.
        pictures: How many pictures each class was learnt from (m), ``(c,)``.
        trust: Pictures that a text is worth, 0 or more.

    Returns:
        What a vector is multiplied with, ``(c, d)``, and what is added, ``(c,)``; a class without
        pictures has its text alone.

    Raises:
        InputError: shapes do not fit.
        ConfigError: ``trust`` is below 0.

    Source:
        none; ours.

    Example:
        >>> import torch
        >>> slopes, texts = torch.tensor([[0.0, 8.0], [0.0, -8.0]]), torch.eye(2)
        >>> learnt_from = torch.tensor([20.0, 0.0])
        >>> weight, _ = leaning(slopes, torch.zeros(2), texts, torch.eye(2), learnt_from)
        >>> weight.round(decimals=4)
        tensor([[ 0.5000,  0.2071],
                [-1.0000,  1.0000]])
    """
    check_shapes(
        slopes=(slopes, "c d"),
        levels=(levels, "c"),
        texts=(texts, "c d"),
        vectors=(vectors, "m d"),
        pictures=(pictures, "c"),
    )
    if not trust >= 0:
        raise ConfigError(f"trust must be 0 or more, pictures that a text is worth. Got {trust}.")
    centred = texts - texts.mean(dim=0)
    of_texts = _deviation(vectors @ centred.T)
    learnt = _deviation((vectors @ slopes.T + levels)[:, pictures > 0])
    k = pictures / (pictures + trust).clamp(min=1)
    weight = (1 - k)[:, None] * centred / of_texts + k[:, None] * slopes / learnt
    return weight, k * levels / learnt


def _deviation(scores: Tensor) -> Tensor:
    """Root of the mean square of scores whose rows have mean 0."""
    return scores.square().mean().sqrt().clamp(min=SMALLEST)
