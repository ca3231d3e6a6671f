"""Check that the noise of sampled logits does not hide the similarity of matching pairs."""

import warnings

import torch
from torch import Tensor, nn

from surelabel.methods.variational.pair_posterior import SampledPairs

MAX_MEAN_LOG_VARIANCE = 3.0
WARM_UP_STEPS = 200
DECAY = 0.98  # decay of the running means, which average about the last 50 steps


class NoiseInflationCheck(nn.Module):
    """Detect noise inflation from running means over training steps.

    At the start of training, all probabilities are small, so the variance losses increase the
    variances. As a result, noise can hide the similarity, and the variances increase further.

    Args:
        min_probability: Smallest expected mean probability of positive pairs after training.

    Source:
        None; ours.
    """

    running_probability: Tensor
    running_log_variance: Tensor
    num_batches: Tensor

    def __init__(self, *, min_probability: float):
        super().__init__()
        self.min_probability = min_probability
        self.register_buffer("running_probability", torch.zeros(()))
        self.register_buffer("running_log_variance", torch.zeros(()))
        self.register_buffer("num_batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def update(self, sample: SampledPairs, positive: Tensor) -> None:
        """Update the running means with a training step.

        Args:
            sample: Sampled logits of n images and s texts.
            positive: True for positive pairs, ``(n, s)``. A step without positive pairs is left
                out.
        """
        if not positive.any():
            return
        self.num_batches += 1
        share = max(1 - DECAY, 1 / int(self.num_batches))
        log_variances = sample.latent.mean_log_variances()[positive]
        self.running_probability.lerp_(sample.logits[positive].sigmoid().mean(), share)
        self.running_log_variance.lerp_(log_variances.mean(), share)

    def warn_if_inflated(self) -> None:
        """Warn if the running means of positive pairs show a low probability or a high variance.

        During the first 200 steps with positive pairs, no warning is given.
        """
        if int(self.num_batches) < WARM_UP_STEPS:
            return
        probability = float(self.running_probability)
        log_variance = float(self.running_log_variance)
        if probability >= self.min_probability and log_variance <= MAX_MEAN_LOG_VARIANCE:
            return
        warnings.warn(
            "Noise inflation was detected in training. Matching pairs have a mean probability of "
            f"{probability:.2f} (expected: {self.min_probability:g} or more) and a mean log "
            f"variance of {log_variance:.1f} (expected: {MAX_MEAN_LOG_VARIANCE:g} or less). Set "
            "method.detach_trunk=true, or decrease method.max_log_variance, method.beta or "
            "method.s_scale.",
            stacklevel=3,
        )
