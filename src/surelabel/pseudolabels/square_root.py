"""Order-persistent correction: the square root of the greatest probabilities."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.pseudolabels.ahead import ahead
from surelabel.pseudolabels.checked import check_count, of_pictures


def square_root(scores: Tensor, *, top: int = 1, bottom: int = 0) -> Tensor:
    """Raise the probability of each picture's first names to its square root.

        g(z) = log √s - log(1 - √s) = log(s)/2 + log(1 + √s) - log(1 - s)     s = sigmoid(z)

    The order of names within a picture stays as it is. That of pictures within a name may change:
    a first name of one can pass a second name of another.

    Args:
        scores: Log-odds, ``(n, c)``, any finite number.
        top: How many names of a picture are raised (beta), >= 0; those that tie with one left out
            are left out.
        bottom: How many of its last names are squared down, s to s^2, >= 0; ``top`` goes first
            where both would reach a name.

    Returns:
        Log-odds ``(n, c)``, in float32 or finer.

    Raises:
        InputError: ``scores`` have another shape, or one is not finite.
        ConfigError: ``top`` or ``bottom`` is no whole number >= 0.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.1, eq. 9.

    Differs:
        A closed form without a limit, where the authors' code rounds to [1e-6, 1 - 1e-6]. Their
        beta is a count when it is an int and a share when it is a float, so that 1.0, which is
        what their command line makes of 1, means every name; here it is always a count. ``bottom``
        is in their code, at 0, and not in the paper.

    Example:
        >>> square_root(torch.tensor([[0.0, -2.0, 0.5]])).round(decimals=4)
        tensor([[ 0.0000, -2.0000,  1.3187]])
    """
    check_count("top", top)
    check_count("bottom", bottom)
    z = of_pictures(scores)
    squared = torch.where(ahead(-z, bottom), _squared(z), z)
    return torch.where(ahead(z, top), _root(z), squared)


def _root(z: Tensor) -> Tensor:
    half = F.logsigmoid(z) / 2
    return half + half.exp().log1p() - F.logsigmoid(-z)


def _squared(z: Tensor) -> Tensor:
    log_s = F.logsigmoid(z)
    return 2 * log_s - F.logsigmoid(-z) - log_s.exp().log1p()
