"""Label-pair regularizer on a sample of the absent labels, for very many of them."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.records import Step
from surelabel.regularizers.pairs import Pairs


def label_pair_sampled(step: Step, *, negatives: int = 64, seed: int | None = None) -> Tensor:
    """Charge each present label against some absent ones, so that the mean over draws is exact.

        2 / (T · (T - 1)) · Σ_{t present} a / m · Σ_{s drawn for t} log(1 + exp(z_s - z_t))

    with a absent labels in the picture, of which each t draws m: the absent labels stand in a
    circle, in an order drawn for the step, and t takes m in a row from a place drawn for it.

    Args:
        step: One training step, as in ``label_pair``.
        negatives: Absent labels to draw for each present one (m), >= 1; all of them where there
            are no more, and then the answer is that of ``label_pair``.
        seed: Of the draws: the same on every call. When left out they come from torch's own
            generator, as in dropout, and differ from step to step.

    Returns:
        One number >= 0, ``()``, in nats, float32 at least; value and gradient are those of
        ``label_pair`` on average over the draws.

    Raises:
        InputError: the parts of the step differ in shape.
        ConfigError: ``negatives`` is below 1.

    Source:
        The regularizer: Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural
        Networks, CVPR 2024, eq. 19 and 20. The sample: the estimator of Horvitz and Thompson,
        A Generalization of Sampling Without Replacement From a Finite Universe, Journal of the
        American Statistical Association, 1952.

    Differs:
        The paper sums over all pairs.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> label_pair_sampled(Step(scores, scores, targets, targets >= 0)).round(decimals=4)
        tensor(0.1467)
    """
    if negatives < 1:
        raise ConfigError(f"negatives must be 1 or more, such as 64. Got {negatives}.")
    pairs = Pairs.of(step)
    rows, present, absent, times = _drawn(pairs, negatives, seed)
    gaps = pairs.values[rows[:, None], absent] - pairs.values[rows, present][:, None]
    weights = pairs.present[rows, present][:, None] * pairs.absent[rows[:, None], absent]
    weights = weights * times * (absent != present[:, None])
    charges = (F.softplus(gaps, threshold=40) * weights).sum(1, dtype=torch.float64)
    return (charges * pairs.share[rows]).sum().to(pairs.values.dtype)


def _drawn(pairs: Pairs, negatives: int, seed: int | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Each present label, the absent ones drawn for it, and how many each of these stands for.

    Returns:
        ``rows (k,)``, ``present (k,)``, ``absent (k, m)`` and ``times (k, m)``, 0 where the circle
        holds fewer than m and begins anew.
    """
    device, candidates = pairs.values.device, pairs.absent > 0
    generator = None if seed is None else torch.Generator(device).manual_seed(seed)
    order = torch.randperm(candidates.shape[1], generator=generator, device=device)
    circles = order[candidates[:, order].nonzero()[:, 1]]
    counts = candidates.sum(1)
    first = counts.cumsum(0) - counts
    rows, present = ((pairs.present > 0) & (counts > 0)[:, None]).nonzero().unbind(1)
    places = torch.rand(len(rows), 1, generator=generator, device=device, dtype=torch.float64)
    turn = torch.arange(min(negatives, candidates.shape[1]), device=device)
    many = counts[rows, None]
    absent = circles[first[rows, None] + ((places * many).long() + turn) % many]
    times = torch.where(turn < many, many / many.clip(max=negatives), 0.0)
    return rows, present, absent, times.to(pairs.values.dtype)
