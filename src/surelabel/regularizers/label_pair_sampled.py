"""Estimate the label-pair regularizer with sampled negatives, for large vocabularies."""

import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.records import TrainingStep
from surelabel.regularizers.pairs.label_pairs import LabelPairs


def label_pair_sampled(
    step: TrainingStep, *, negatives: int = 64, seed: int | None = None
) -> Tensor:
    """Estimate ``label_pair`` without bias from negatives that are sampled for each positive.

        2 / (T · (T - 1)) · Σ_{t positive} a / m · Σ_{s sampled for t} log(1 + exp(z_s - z_t)),
        mean over images

    In this formula, T is the number of labels of the image with a known target and a is the
    number of its negatives. The number of negatives sampled for each positive is m. The values z
    are the log-odds, or the scores if there are no log-odds. In each step, the negatives of an
    image are arranged in a circle in random order. For each positive, m consecutive negatives are
    used, starting at a random position.

    Args:
        step: Training step, with targets as in ``label_pair``.
        negatives: Number of negatives sampled for each positive (m), >= 1. If the image has at most
            m negatives, all negatives are used, as in ``label_pair``.
        seed: Seed of the sampling; each call uses the same seed. If None, the negatives are sampled
            with torch's global generator and differ in each step, as in dropout.

    Returns:
        Scalar loss >= 0 in nats, ``()``, in float32 or a wider type. The expected loss and the
        expected gradient equal those of ``label_pair``.

    Raises:
        InputError: If the shapes of the tensors of the step do not match.
        ConfigError: If ``negatives`` is less than 1.

    Source:
        The regularizer: Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural
        Networks, CVPR 2024, eq. 19 and 20. The sampling: the estimator of Horvitz and Thompson,
        A Generalization of Sampling Without Replacement From a Finite Universe, Journal of the
        American Statistical Association, 1952.

    Differs:
        The paper computes the exact sum over all pairs.

    Example:
        >>> scores, targets = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> step = TrainingStep(scores, scores, targets, targets >= 0)
        >>> label_pair_sampled(step).round(decimals=4)
        tensor(0.1467)
    """
    if negatives < 1:
        raise ConfigError(f"negatives must be at least 1; got {negatives}. The default is 64.")
    pairs = LabelPairs.from_step(step)
    rows, positive, negative, sample_weights = _sample_label_pair_negatives(pairs, negatives, seed)
    gaps = pairs.scores[rows[:, None], negative] - pairs.scores[rows, positive][:, None]
    weights = (
        pairs.positive_weights[rows, positive][:, None]
        * pairs.negative_weights[rows[:, None], negative]
    )
    weights = weights * sample_weights * (negative != positive[:, None])
    losses = (F.softplus(gaps, threshold=40) * weights).sum(1, dtype=torch.float64)
    return (losses * pairs.image_weights[rows]).sum().to(pairs.scores.dtype)


def _sample_label_pair_negatives(
    pairs: LabelPairs, n_negatives: int, seed: int | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sample negatives for each positive.

    Returns:
        Row and column of each positive, ``(k,)`` each, and columns and weights of the sampled
        negatives, ``(k, m)`` each. If the image has fewer than m negatives, repeated negatives have
        the weight 0.
    """
    device, candidates = pairs.scores.device, pairs.negative_weights > 0
    generator = None if seed is None else torch.Generator(device).manual_seed(seed)
    order = torch.randperm(candidates.shape[1], generator=generator, device=device)
    circles = order[candidates[:, order].nonzero()[:, 1]]
    counts = candidates.sum(1)
    first = counts.cumsum(0) - counts
    has_pair = (pairs.positive_weights > 0) & (counts > 0)[:, None]
    rows, positive = has_pair.nonzero().unbind(1)
    starts = torch.rand(len(rows), 1, generator=generator, device=device, dtype=torch.float64)
    steps = torch.arange(min(n_negatives, candidates.shape[1]), device=device)
    row_counts = counts[rows, None]
    positions = ((starts * row_counts).long() + steps) % row_counts
    negative = circles[first[rows, None] + positions]
    stands_for = row_counts / row_counts.clip(max=n_negatives)
    sample_weights = torch.where(steps < row_counts, stands_for, 0.0)
    return rows, positive, negative, sample_weights.to(pairs.scores.dtype)
