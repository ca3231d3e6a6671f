"""Compute the fraction of each image region in the transport plans of labels."""

import warnings
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from surelabel.counts import format_count
from surelabel.errors import ConfigError
from surelabel.methods.prompt_tuning.learned_context import LearnedContext
from surelabel.methods.region_matching.region_matching import RegionMatching

MAX_TRAINING_STEPS = 1000  # limit of the iterations of a transport plan in training


class RegionShares(nn.Module):
    """Compute the fraction of each region in the transport plan of each label.

    The fractions have no gradient. In training, the plan is computed with the teacher plan of the
    frozen texts. Outside training, the plan is computed for the labels of the fit, and is extended
    to each label. The fractions of a label therefore do not depend on other new labels. If a
    transport cannot be extended, such as ``bipartite``, the plan is computed for all labels.

    Args:
        names: Labels, length c.
        frozen_texts: Unit vectors of the labels from the frozen text tower, ``(c, d)``.
        matching: Transport between regions and labels.

    Attributes:
        fit_names: Labels of the fit. Before ``use_fit_labels`` is called, ``names``.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.3.
    """

    frozen_texts: Tensor
    fit_texts: Tensor | None
    is_new: Tensor | None

    def __init__(self, names: Sequence[str], frozen_texts: Tensor, matching: RegionMatching):
        super().__init__()
        self._names = self.fit_names = list(names)
        self.matching = matching
        self.register_buffer("frozen_texts", frozen_texts, persistent=False)
        self.register_buffer("fit_texts", None, persistent=False)
        self.register_buffer("is_new", None, persistent=False)
        self._n_unconverged = 0

    @torch.no_grad()
    def use_fit_labels(self, names: Sequence[str], context: LearnedContext) -> None:
        """Encode the labels of the fit, for which the plan is computed from now on.

        If the labels of the fit are those of this module, no label is encoded.

        Args:
            names: Labels of the fit, length r.
            context: Learned context with the weights of the fit, which must be loaded before.

        Raises:
            ConfigError: If the context is class-specific, and the labels of the fit are not those
                of this module.
        """
        self.fit_names, self.fit_texts, self.is_new = list(names), None, None
        if self.fit_names != self._names:
            self.fit_texts = context.encode_words(names)
            is_new = [name not in self.fit_names for name in self._names]
            self.is_new = torch.tensor(is_new, device=self.frozen_texts.device)

    @torch.no_grad()
    def forward(self, regions: Tensor, texts: Tensor) -> Tensor:
        """Return the fractions, ``(n, p, c)``, which sum to 1 over the regions.

        Args:
            regions: Unit vectors of p regions of each image, ``(n, p, d)``.
            texts: Unit vectors of the labels with the learned context, ``(c, d)``.

        Raises:
            NotConverged: If the transport plan of an image did not converge.
        """
        reference = None if self.fit_texts is None else regions @ self.fit_texts.T
        return self.matching.region_shares(regions @ texts.T, reference, self.is_new)

    @torch.no_grad()
    def training_shares(self, regions: Tensor, texts: Tensor, positive: Tensor) -> Tensor:
        """Return the fractions in plans that are computed with the teacher plan, ``(n, p, c)``.

        If a plan does not converge, its last values are used. At the end of training, a warning
        states the number of plans that did not converge.

        Args:
            regions: Unit vectors of p regions of each image, ``(n, p, d)``.
            texts: Unit vectors of the labels with the learned context, ``(c, d)``.
            positive: True where a label is positive, ``(n, c)``.

        Raises:
            ConfigError: If training diverged, so that texts are not finite.
        """
        if not texts.isfinite().all():
            raise ConfigError(
                "Training diverged: text vectors are not finite. Use a smaller learning_rate."
            )
        plan = self.matching.plan(
            regions @ texts.T,
            regions @ self.frozen_texts.T,
            positive,
            max_steps=MAX_TRAINING_STEPS,
        )
        self._n_unconverged += int((~plan.converged).sum())
        return plan.accept_unconverged().matrix * len(texts)

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode, and warn about unconverged plans after training."""
        if self._n_unconverged and not mode:
            warnings.warn(
                f"{format_count(self._n_unconverged, 'transport plan')} of regions and labels did "
                "not converge in training; the last values were used. Raise method.regularization.",
                stacklevel=2,
            )
            self._n_unconverged = 0
        return super().train(mode)
