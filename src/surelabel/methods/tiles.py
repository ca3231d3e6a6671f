"""Score the whole image and the tiles of regular grids, and fuse the scores per label."""

from collections.abc import Sequence

from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.methods.text_scoring.view_fusion import ViewFusion
from surelabel.records import Features
from surelabel.views import TileGrids, TileLayout


class Tiles(Method):
    """Score the whole image and each tile of one or more grids, and fuse the scores.

        score = fusion(s(whole), s(tile 1), …, s(tile t))        s: score of ``zero_shot``

    The positions of tiles are deterministic, so tiles are encoded once and cached. All settings
    except ``rows``, ``columns`` and ``grids`` can be changed without encoding the tiles again.

    Args:
        encoder: Encoder of images and texts; ``encoder.scale`` is the default of ``scale``.
        names: Labels. Synonyms of one label are separated by ``|``, as in ``sofa|couch``.
        templates, domain, background, scale: Settings of the text scores; see ``TextScorer``.
        rows, columns: Number of tile rows and tile columns of the finest grid, >= 1.
        grids: Largest number of grids, >= 1. Each coarser grid has one row and one column less than
            the next finer grid, until a grid has at most two rows and two columns. With 3 rows, 3
            columns and 2 grids an image needs 1 + 9 + 4 encoder passes.
        fusion: Entry of ``FUSIONS``. The fusions by maximum and ``mean`` accept any score domain,
            and a margin has the unit of the scores. ``mean_of_centred`` and
            ``mean_of_standardized`` already compare labels with each other, and should be combined
            with ``domain=reference``.
        fusion_parameter: Value of the setting of the fusion: image weight, margin or dead band. If
            None, the default of the fusion is used.

    Raises:
        ConfigError: If ``grids`` is below 1, or a setting of the text scores is out of range.
        InputError: If ``rows`` or ``columns`` is below 1, or ``fusion_parameter`` is out of range.
        UnknownName: If ``fusion`` is not an entry of ``FUSIONS``.

    Source:
        CDUL (Abdelfattah et al., ICCV 2023), section 3.1, for 3 by 3 tiles; TailorCLIP,
        arXiv:2606.11626, section 3.2, eq. 7, for the maximum over views.

    Differs:
        Two grids are used, and scores are fused instead of probabilities; both were chosen on the
        validation images of scenes-80. On the test images of scenes-80, the mAP with a 95 %
        interval is 78.1 [77.1, 79.5] (tiny-vit) and 63.1 [62.0, 64.6] (tiny-rn). The best method
        with one encoder pass has an mAP of 50.3 and 49.9. With only 2 by 2 tiles, the mAP is 70.2
        and 63.5; with only 3 by 3 tiles, it is 72.8 and 53.7. With ``domain=softmax`` at half the
        scale, the mAP is 1.1 to 1.7 higher. The fusion ``mean_of_standardized`` has an mAP of 65.2
        and 57.6 on scenes-80, but may be better on photographs. On VOC2012 train, with RN50x64 and
        3 by 3 tiles, its mAP is 90.2, and the mAP of fusions by maximum is at most 89.6.
    """

    learns_from = "nothing"
    needs = ("views",)
    open_vocabulary = True
    recipe = TrainingRecipe()

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str = "reference",
        background: str | Sequence[str] = "none",
        scale: float | None = None,
        rows: int = 3,
        columns: int = 3,
        grids: int = 2,
        fusion: str = "max_with_margin",
        fusion_parameter: float | None = None,
    ):
        super().__init__()
        self.grids = TileGrids(rows, columns, grids)
        self.max_views = self.grids.n_tiles
        text_scorer = TextScorer(
            encoder, names, templates=templates, domain=domain, background=background, scale=scale
        )
        self.view_fusion = ViewFusion(text_scorer, fusion=fusion, fusion_parameter=fusion_parameter)

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether labels that are added after the fit change the scores of other labels."""
        return self.view_fusion.scores_depend_on_other_labels

    def next_views(self, features: Features) -> TileLayout | None:
        """Return the next grid of tiles to be encoded, in order from coarse to fine."""
        return self.grids.next_layout(features)

    def forward(self, features: Features) -> Tensor:
        """Return fused scores ``(n, c)`` of ``pooled`` ``(n, d)`` and ``views`` ``(n, t, d)``."""
        scores: Tensor = self.view_fusion(features)
        return scores

    def view_scores(self, features: Features) -> Tensor:
        """Return the scores of the whole image, then of each tile, ``(n, 1 + t, c)``."""
        return self.view_fusion.view_scores(features)
