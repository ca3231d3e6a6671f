"""Order-persistent correction: the greatest probabilities moved towards one."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.pseudolabels.ahead import ahead
from surelabel.pseudolabels.checked import check_count, check_share, of_pictures


def linear(scores: Tensor, *, top: int = 1, floor: float = 0.1) -> Tensor:
    """Lift the probability of each picture's first names above a floor, in proportion.

        g(z) = log(a + (1 - a) s) - log((1 - a)(1 - s))     s = sigmoid(z)

    Args:
        scores: Log-odds, ``(n, c)``, any finite number.
        top: How many names of a picture are lifted (beta), >= 0; those that tie with one left out
            are left out.
        floor: What a probability of 0 becomes (alpha, the a above), in [0, 1); 0 changes nothing.

    Returns:
        Log-odds ``(n, c)``, in float32 or finer.

    Raises:
        InputError: ``scores`` have another shape, or one is not finite.
        ConfigError: ``top`` is no whole number >= 0, or ``floor`` is outside [0, 1).

    Source:
        TailorCLIP, arXiv:2606.11626, section 4.3.4, eq. 22.

    Differs:
        A closed form without a limit; ``top`` is always a count: see :func:`square_root`.

    Example:
        >>> linear(torch.tensor([[0.0, -2.0, 3.0]])).round(decimals=4)
        tensor([[ 0.0000, -2.0000,  3.1103]])
    """
    check_count("top", top)
    check_share("floor", floor)
    z = of_pictures(scores)
    if not floor:
        return z
    least = torch.full_like(z, math.log(floor))
    present = torch.logaddexp(least, math.log1p(-floor) + F.logsigmoid(z))
    lifted = present - math.log1p(-floor) - F.logsigmoid(-z)
    return torch.where(ahead(z, top), lifted, z)
