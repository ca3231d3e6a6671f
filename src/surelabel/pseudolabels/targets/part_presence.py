"""Compute probabilities of labels in an image from the softmax probabilities of its parts."""

import torch
from torch import Tensor

from surelabel.pseudolabels.targets.input_validation import validate_pseudolabel_scores
from surelabel.shapes import check_shapes


def part_presence_probabilities(names: Tensor, others: Tensor) -> Tensor:
    """Return the probability of each label in an image whose parts overlap.

        p^k_j = exp(z^k_j) / (Σ_i exp(z^k_i) + Σ_o exp(z^k_o))
        p_j = (max_k p^k_j + 1 - Π_k (1 - p^k_j)) / 2

    z^k_j is the similarity of part k with label j, z^k_o the similarity with word o of ``others``,
    and p^k_j the probability of label j in part k. A part mostly contains one object, so that the
    softmax of a part is approximately calibrated; the softmax of a whole image with several objects
    is not. The probability in the image is at least the probability in the best part, and at most
    the probability for independent parts. The function returns the mean of both bounds, because
    overlapping parts are partly dependent. The words in ``others`` must include the objects without
    a label; otherwise parts with such objects raise the probability of similar labels.

    Args:
        names: Similarities in nats (cosines times the scale of the encoder) of each part with each
            label, ``(n, t, c)``.
        others: Similarities of each part with words for all other image contents, ``(n, t, o)``.

    Returns:
        Targets in [0, 1], ``(n, c)``, in float32 or wider.

    Raises:
        InputError: If the shapes do not match, there is no label, or a similarity is not finite.

    Source:
        None; ours. A softmax over labels is nearly calibrated for images with one object, according
        to Minderer et al., Revisiting the Calibration of Modern Neural Networks, NeurIPS 2021,
        arXiv:2106.07998.

    Example:
        >>> parts = torch.tensor([[[4.0, 0.0], [1.0, 1.0]]])
        >>> part_presence_probabilities(parts, torch.zeros(1, 2, 3)).round(decimals=4)
        tensor([[0.9427, 0.3280]])
    """
    check_shapes(names=(names, "n t c"), others=(others, "n t o"))
    labels = validate_pseudolabel_scores(names)
    others = validate_pseudolabel_scores(others) if others.shape[-1] else others
    similarities = torch.cat([labels, others], dim=-1)
    parts = similarities.softmax(dim=-1)[..., : names.shape[-1]]
    return (parts.amax(dim=1) + 1 - (1 - parts).prod(dim=1)) / 2
