"""Shrink learned class weights towards the text embeddings, by the number of training images."""

from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.shapes import check_shapes

MIN_DEVIATION = 1e-5  # smaller deviations are rounding errors, as of identical texts


def shrink_to_text_prior(
    slopes: Tensor,
    biases: Tensor,
    texts: Tensor,
    vectors: Tensor,
    image_counts: Tensor,
    *,
    prior_strength: float = 20.0,
) -> tuple[Tensor, Tensor]:
    """Shrink learned class weights towards the text embeddings, by the number of training images.

        h_c = (1 - k_c) · (cos(x, t_c) - mean) / sd + k_c · g_c(x) / sd(g)
        k_c = m_c / (m_c + prior_strength)

    h_c is the result for class c, t_c the text vector, g_c the learned score, and m_c the number of
    images of class c. The mean of the cosines is computed over the classes. sd and sd(g) are the
    standard deviations of the centred cosines and of the learned scores over ``vectors``.

    Args:
        slopes: Weights of the learned scores g, centred over the classes with images, ``(c, d)``.
        biases: Biases of the learned scores, centred over the classes with images, ``(c,)``.
        texts: Unit vectors of the class texts, ``(c, d)``.
        vectors: Vectors over which the standard deviations are computed, ``(m, d)``.
        image_counts: Number of images that each class was learned from (m_c), ``(c,)``.
        prior_strength: Weight of the text prior, as a number of images, >= 0.

    Returns:
        Shrunk weights ``(c, d)`` and biases ``(c,)``. A class without images is scored by its
        text only.

    Raises:
        InputError: If the shapes do not match.
        ConfigError: If ``prior_strength`` is negative.

    Source:
        None; ours.

    Example:
        >>> import torch
        >>> slopes, texts = torch.tensor([[0.0, 8.0], [0.0, -8.0]]), torch.eye(2)
        >>> counts = torch.tensor([20.0, 0.0])
        >>> weight, _ = shrink_to_text_prior(slopes, torch.zeros(2), texts, torch.eye(2), counts)
        >>> weight.round(decimals=4)
        tensor([[ 0.5000,  0.2071],
                [-1.0000,  1.0000]])
    """
    check_shapes(
        slopes=(slopes, "c d"),
        biases=(biases, "c"),
        texts=(texts, "c d"),
        vectors=(vectors, "m d"),
        image_counts=(image_counts, "c"),
    )
    if not prior_strength >= 0:
        raise ConfigError(
            f"prior_strength, a number of images, must be 0 or more; got {prior_strength}."
        )
    centred_texts = texts - texts.mean(dim=0)
    text_deviation = _text_prior_root_mean_square(vectors @ centred_texts.T)
    learned_deviation = _text_prior_root_mean_square(
        (vectors @ slopes.T + biases)[:, image_counts > 0]
    )
    k = image_counts / (image_counts + prior_strength).clamp(min=1)
    weight = (1 - k)[:, None] * centred_texts / text_deviation
    return weight + k[:, None] * slopes / learned_deviation, k * biases / learned_deviation


def _text_prior_root_mean_square(scores: Tensor) -> Tensor:
    """Return the standard deviation of scores whose rows have mean 0."""
    return scores.square().mean().sqrt().clamp(min=MIN_DEVIATION)
