"""Replace the highest probabilities by their square roots, without changing their order."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.pseudolabels.targets.input_validation import (
    check_pseudolabel_count,
    validate_pseudolabel_image_scores,
)
from surelabel.pseudolabels.targets.top_k_mask import mask_top_k


def square_root_correction(scores: Tensor, *, top_k: int = 1, bottom_k: int = 0) -> Tensor:
    """Replace the highest probabilities of each image by their square root.

        g(z) = log √s - log(1 - √s) = log(s)/2 + log(1 + √s) - log(1 - s)     s = sigmoid(z)

    z is the log-odds of a label. The order of the labels within an image does not change. The order
    of the images within a label may change, because only the highest labels of each image are
    raised.

    Args:
        scores: Finite log-odds, ``(n, c)``.
        top_k: Number of labels per image whose scores are raised (beta in the paper), >= 0. If only
            some of several equal scores would fit, none of them is changed.
        bottom_k: Number of lowest-scoring labels per image whose probabilities are squared, >= 0.
            If a label is among the highest and the lowest labels, ``top_k`` has priority.

    Returns:
        Corrected log-odds ``(n, c)``, in float32 or wider.

    Raises:
        InputError: If ``scores`` are not of shape ``(n, c)``, or a score is not finite.
        ConfigError: If ``top_k`` or ``bottom_k`` is not a whole number >= 0.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.1, eq. 9.

    Differs:
        The result is computed in closed form, without clipping; the authors' code clips
        probabilities to [1e-6, 1 - 1e-6]. In the authors' code, beta is a count if it is an int,
        and a fraction of the labels if it is a float. The command line of this code converts 1 to
        1.0, which means all labels. Here ``top_k`` is always a count. ``bottom_k`` is in the
        authors' code, with the value 0, but not in the paper.

    Example:
        >>> square_root_correction(torch.tensor([[0.0, -2.0, 0.5]])).round(decimals=4)
        tensor([[ 0.0000, -2.0000,  1.3187]])
    """
    check_pseudolabel_count("top_k", top_k)
    check_pseudolabel_count("bottom_k", bottom_k)
    z = validate_pseudolabel_image_scores(scores)
    lowered = torch.where(mask_top_k(-z, bottom_k), _square_root_correction_inverse(z), z)
    return torch.where(mask_top_k(z, top_k), _log_odds_of_square_root(z), lowered)


def _log_odds_of_square_root(z: Tensor) -> Tensor:
    half_log_p = F.logsigmoid(z) / 2
    return half_log_p + half_log_p.exp().log1p() - F.logsigmoid(-z)


def _square_root_correction_inverse(z: Tensor) -> Tensor:
    log_p = F.logsigmoid(z)
    return 2 * log_p - F.logsigmoid(-z) - log_p.exp().log1p()
