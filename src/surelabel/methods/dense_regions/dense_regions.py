"""Score the patches of the whole image, and windows around the highest-scoring patches."""

from collections.abc import Iterator, Sequence

import torch
from PIL import Image
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError, InputError
from surelabel.methods.dense_regions.refinement import refine_by_attention
from surelabel.methods.dense_regions.windows import select_windows
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.records import Features
from surelabel.views import RegionLayout, ViewLayout, image_and_view_vectors

IMAGES_PER_BATCH = 64  # images whose heat maps are in memory together
MIN_WINDOW_SIZE = 0.01  # window positions are rounded to a hundredth of this size
MIN_GRID_SIDE = 4  # patches down and across; a coarser grid does not localize labels


class DenseRegions(Method):
    """Score all patches, and encode windows around the highest-scoring patches separately.

        score = w · max over patches of R + (1 - w) · max(s(image), s(window 1), …)

    w is ``patch_weight``, s the text score of ``TextScorer``, and R the text scores of patches
    after ``refine_by_attention``. The windows contain the highest-scoring patches of different
    labels; see ``select_windows``. An image needs one encoder pass at ``image_size``, and one
    encoder pass at the default size for each window.

    Args:
        encoder: Encoder of images and texts; ``encoder.scale`` is the default of ``scale``.
        names: Labels. Synonyms of one label are separated by ``|``, as in ``sofa|couch``.
        templates, domain, background, scale: Settings of the text scores; see ``TextScorer``.
        image_size: Height and width in pixels at which the whole image is encoded, a multiple of
            the patch size of the encoder. If None, the larger of the default size of the encoder
            and the size with 4 by 4 patches is used.
        windows: Largest number of windows per image, >= 0. If 0, no windows are encoded.
        window_size: Width and height of a window as fractions of the image, in [0.01, 1].
        patch_weight: Weight of the patch scores (w), in [0, 1]. The scores of the image and its
            windows have the weight 1 - w.

    Raises:
        ConfigError: If a setting is out of range, or the encoder does not support ``image_size``,
            or has no attention between patches.

    Source:
        TagCLIP (Lin et al., AAAI 2024), arXiv:2312.12828: patches from self-aware attention, a
        softmax with background words, refinement by attention, and a second encoder pass for
        candidate regions.

    Differs:
        The settings were chosen, and the mAP was measured, on 200 validation images of Scenes with
        `tiny-vit`, unless stated otherwise. The paper crops one box for each label whose score is
        above the middle of the score range of the image. The box contains the patches whose values
        are above half of the range of the label's map. On 300 images, five boxes from maps that
        were refined as in the paper had an mAP of 53.8, and five windows had 77.2. In both cases,
        the score was a maximum instead of the weighted mean. Boxes from maps that are refined as
        here were not tested. An empty box ends the search in the authors' code, but windows are
        never empty.

        Window scores are used for all labels, without an attention mask on the class token, and the
        score of the whole image is also used. The paper uses equal weights (``patch_weight=0.5``).
        With equal weights, the mAP is 76.5 instead of 78.9 for `tiny-vit`, but 67.6 instead of 67.1
        for `tiny-rn`. The paper encodes photographs at their original resolution. With a maximum
        instead of the weighted mean, the mAP of `tiny-rn` is 59.2 at 192 pixels and 65.9 at 128
        pixels. Windows are selected before the refinement, because this order raises the mAP by
        0.8.

        Added labels change the scores of other labels. On 300 validation images of Scenes,
        ``domain=reference`` with windows selected by the scores of the reference list has an mAP
        that is lower by 4.5 (`tiny-vit`) and 1.5 (`tiny-rn`); see docs/open-vocabulary.md.
    """

    learns_from = "nothing"
    needs = ("self_aware", "attention", "views")
    open_vocabulary = True
    recipe = TrainingRecipe()

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "softmax",
        background: str | Sequence[str] = "usual",
        scale: float | None = None,
        image_size: int | None = None,
        windows: int = 5,
        window_size: float = 0.4,
        patch_weight: float = 0.3,
    ):
        super().__init__()
        if windows < 0 or not MIN_WINDOW_SIZE <= window_size <= 1 or not 0 <= patch_weight <= 1:
            raise ConfigError(
                f"windows must be 0 or more, window_size in [{MIN_WINDOW_SIZE}, 1] and "
                f"patch_weight in [0, 1]; got windows={windows}, window_size={window_size}, "
                f"patch_weight={patch_weight}."
            )
        self.text_scorer = TextScorer(
            encoder, names, templates=templates, domain=domain, background=background, scale=scale
        )
        if image_size is None:
            self.image_size = _dense_regions_image_size(encoder)
        else:
            self.image_size = encoder.with_image_size(image_size).input_side
        self.windows, self.window_size, self.patch_weight = windows, window_size, patch_weight
        self.max_views = windows

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether added labels change the scores of other labels.

        Windows are selected by the patch scores of all labels.
        """
        return self.windows > 0 or self.text_scorer.scores_depend_on_other_labels

    def heat_maps(self, features: Features) -> Tensor:
        """Return the refined log-odds of each label at each patch, ``(n, c, down, across)``.

        Raises:
            InputError: If the features contain no patches, or no attention between patches.
        """
        if features.patches is None or features.grid is None or features.attention is None:
            raise InputError(
                "dense_regions needs features.patches, features.grid and features.attention; at "
                "least one is missing. Encode images with kind='attentive'."
            )
        scores = self.text_scorer(features.patches)
        return _dense_regions_score_maps(
            refine_by_attention(scores, features.attention, features.grid), features
        )

    @torch.no_grad()
    def next_views(self, features: Features) -> list[ViewLayout | None] | None:
        """Return windows around the highest-scoring patches.

        If ``windows`` is 0 or the windows are already encoded, the result is None.
        """
        if features.views is not None or not self.windows:
            return None
        return [
            RegionLayout(windows)
            for batch in _dense_regions_feature_batches(features)
            for windows in select_windows(
                _dense_regions_score_maps(self.text_scorer(batch.patches), batch),
                count=self.windows,
                window_size=self.window_size,
            )
        ]

    def forward(self, features: Features) -> Tensor:
        """Return scores ``(n, c)`` of images from their vectors, patches, attention and views.

        Raises:
            InputError: If the features contain no patches, or no attention between patches.
        """
        return self.view_scores(features).amax(dim=1)

    def view_scores(self, features: Features) -> Tensor:
        """Return image and window scores, blended with patch scores, ``(n, 1 + t, c)``."""
        strongest = [
            self.heat_maps(batch).amax(dim=(2, 3))
            for batch in _dense_regions_feature_batches(features)
        ]
        patches = torch.cat(strongest)[:, None]
        views: Tensor = self.text_scorer(image_and_view_vectors(features))
        return self.patch_weight * patches + (1 - self.patch_weight) * views


def _dense_regions_image_size(encoder: Encoder) -> int:
    """Return the larger of the default size of the encoder and the size with 4 by 4 patches."""
    size = encoder.input_side
    sized_encoder = encoder.with_image_size(size)
    blank = sized_encoder.preprocess(Image.new("RGB", (size, size)))
    features = sized_encoder.encode_patches_with_attention(blank[None])
    assert features.grid is not None
    grid_side = min(features.grid)
    return size // grid_side * max(grid_side, MIN_GRID_SIDE)


def _dense_regions_score_maps(scores: Tensor, features: Features) -> Tensor:
    """Return patch scores ``(n, p, c)`` as maps ``(n, c, down, across)``."""
    assert features.grid is not None
    maps: Tensor = scores.transpose(1, 2).unflatten(2, features.grid)
    return maps


def _dense_regions_feature_batches(features: Features) -> Iterator[Features]:
    """Yield pooled vectors, patches and attention of a few images at a time.

    While ``torch.export`` records the computation, all images are one batch, as in
    ``inference_batches``.
    """
    if torch.compiler.is_exporting():
        yield features
        return
    for start in range(0, len(features.pooled), IMAGES_PER_BATCH):
        rows = slice(start, start + IMAGES_PER_BATCH)
        patches, attention = features.patches, features.attention
        yield Features(
            features.pooled[rows],
            patches=None if patches is None else patches[rows],
            grid=features.grid,
            attention=None if attention is None else attention[rows],
        )
