"""Score an image and its views, and fuse the scores into one score per label."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.records import Features
from surelabel.tables import configure_table_entry, table_entry_settings
from surelabel.views import FUSIONS, LABEL_COMPARING_FUSIONS, image_and_view_vectors


class ViewFusion(nn.Module):
    """Score the whole image and each view, and fuse the scores.

    Args:
        text_scorer: Module that scores vectors against the labels.
        fusion: Entry of ``FUSIONS``.
        fusion_parameter: Value of the setting of the fusion, such as the margin or the image
            weight. If None, the default of the fusion is used.
        includes_whole: Whether the whole image is also used as a view. If True, images with fewer
            views than others can be padded with the whole image without a change of the fused
            scores.

    Raises:
        UnknownName: If the fusion is not an entry of ``FUSIONS``.
        ConfigError, InputError: If ``fusion_parameter`` is out of range, or the fusion needs more
            labels.
    """

    def __init__(
        self,
        text_scorer: TextScorer,
        *,
        fusion: str,
        fusion_parameter: float | None,
        includes_whole: bool = False,
    ):
        super().__init__()
        self.text_scorer, self.includes_whole = text_scorer, includes_whole
        self.compares_labels = fusion in LABEL_COMPARING_FUSIONS
        self.fuse = choose_view_fusion(fusion, fusion_parameter)
        row = torch.zeros(1, len(text_scorer.texts))
        self.fuse(row, row[:, None])  # one dummy row, so that bad settings fail early

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether added labels change the scores of other labels."""
        return self.compares_labels or self.text_scorer.scores_depend_on_other_labels

    def forward(self, features: Features) -> Tensor:
        """Return fused scores ``(n, c)``; without views, the whole image is the only view."""
        scores = self.view_scores(features)
        uses_whole = self.includes_whole or features.views is None
        return self.fuse(scores[:, 0], scores if uses_whole else scores[:, 1:])

    def view_scores(self, features: Features) -> Tensor:
        """Return the scores of the whole image, then of each view, ``(n, 1 + t, c)``."""
        scores: Tensor = self.text_scorer(image_and_view_vectors(features))
        return scores


def choose_view_fusion(
    name: str, parameter: float | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return an entry of ``FUSIONS`` with a fixed value of its setting.

    Args:
        name: Entry of ``FUSIONS``.
        parameter: Value of the setting of the fusion. If None, the default of the fusion is used.

    Raises:
        UnknownName: If the fusion is not an entry of ``FUSIONS``.
        ConfigError: If ``parameter`` is not a number.

    Example:
        >>> image, view = torch.tensor([[1.0, 0.0]]), torch.tensor([[[0.0, 2.0]]])
        >>> choose_view_fusion("max_with_margin", 0.5)(image, view)
        tensor([[1.0000, 1.5000]])
    """
    fusion = configure_table_entry(FUSIONS, name)
    if parameter is None:
        return fusion
    return configure_table_entry(
        FUSIONS, name, **{setting: parameter for setting in table_entry_settings(FUSIONS[name])}
    )
