"""Score labels with DualCoOp and with regions that optimal transport matches to the labels."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.methods.dualcoop import DualCoOp
from surelabel.methods.prompt_tuning.region_scores import whole_images_and_patches
from surelabel.methods.prompt_tuning.region_shares import RegionShares
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.records import Features


class DualCoOpMatching(DualCoOp):
    """Compare an image and its matched regions with a positive and a negative text of each label.

        score = a · ((s⁺_image + Σ_r w_rc · s⁺_r) / 2 - g · Σ_r w_rc · s⁻_r) + b

    All symbols except w_rc are those of ``dualcoop``. As in ``coop_matching``, w_rc is the fraction
    of region r in the column of label c of the entropic transport plan between regions and labels.
    The regions are the whole image and its patches, and the texts of the plan are those with the
    positive context.

    Args:
        encoder: Encoder of images and texts with patch vectors.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit, unless the contexts are class-specific.
        initial_context: Words whose token embeddings initialize the positive context.
        initial_negative_context: Words whose token embeddings initialize the negative context.
        context_length: Number of vectors of each context that are initialized at random, >= 1. If
            None, the contexts are initialized by words; a context without words has 16 vectors.
        class_specific: Whether each label has its own contexts. Other labels then need another fit.
        transport: Entry of ``TRANSPORTS`` that matches regions to labels.
        regularization: Entropic regularization of the transport plan (lambda1 in the paper), > 0.
        knowledge_weight: Weight of the teacher plan in training (lambda2 in the paper), >= 0.
        presence_scale: Inverse temperature, >= 0, of the softmax over regions. This softmax
            computes the weight of each region from its highest cosine with any label. If 0, all
            regions have equal weights.

    Raises:
        ConfigError, UnknownName: If a setting is unknown or out of range, or if the encoder has no
            text tower of open_clip or no patch vectors. Also if a context and a label together are
            longer than the text tower allows.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.3 and
        Table 7, "Ours + DualCoOp".

    Differs:
        The differences of ``coop_matching`` and ``dualcoop`` also apply. On scenes-80, matching
        does not improve ``dualcoop``. Each pair a/b is measured as for ``coop_matching``: it is the
        mAP of the first 40 labels (a) and of the other labels (b) on the validation images.
        ``dualcoop`` has 55.4/51.1 with tiny-vit and 56.7/52.2 with tiny-rn; all further pairs have
        this order. The default has 54.9/51.1 and 55.0/51.8.

        With ``transport=softmax``, the mAP is 55.2/51.8 and 55.2/51.9. With a ``knowledge_weight``
        of 0, it is 54.9/51.1 and 54.9/51.6; with 0.2, it is 54.9/51.3 and 55.1/52.2. With a
        ``presence_scale`` of 0, it is 54.2/51.2 and 55.7/51.6; with 30, it is 53.6/49.0 and
        53.4/51.1. With a ``regularization`` of 0.05, it is 54.7/50.8 and 55.4/51.7; with 0.2, it is
        54.7/50.2 and 54.3/51.5.
    """

    recipe = replace(DualCoOp.recipe, micro_batch_size=32)

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "a photo of a",
        initial_negative_context: str = "a photo without a",
        context_length: int | None = None,
        class_specific: bool = False,
        transport: str = "sinkhorn",
        regularization: float = 0.1,
        knowledge_weight: float = 0.05,
        presence_scale: float = 10.0,
    ):
        super().__init__(
            encoder,
            names,
            initial_context=initial_context,
            initial_negative_context=initial_negative_context,
            context_length=context_length,
            class_specific=class_specific,
        )
        matching = RegionMatching(
            transport=transport,
            regularization=regularization,
            knowledge_weight=knowledge_weight,
            presence_scale=presence_scale,
            logit_scale=encoder.scale,
        )
        self.region_shares = RegionShares(names, self.text_scorer.texts, matching)

    @property
    def fit_names(self) -> list[str]:
        """Return the labels of the fit, for which the transport plan is computed."""
        return self.region_shares.fit_names

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether labels that are added after the fit change the scores of other labels."""
        return self.region_shares.matching.needs_all_labels

    def use_fit_labels(self, encoder: Encoder, names: Sequence[str]) -> None:
        """Set the labels of the fit, for which the transport plan is computed.

        Args:
            encoder: Encoder of this method.
            names: Labels of the fit.

        Raises:
            ConfigError: If the contexts are class-specific, and the labels of the fit are not those
                of the method.
        """
        self.region_shares.use_fit_labels(names, self.positive)

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return the scores of one head, ``(1, n, c)``, computed with the teacher plan.

        Args:
            features: Features of n images.
            targets: Targets in [0, 1], ``(n, c)``, for c labels.
            known: True where the target is known, ``(n, c)``.

        Raises:
            ConfigError: If training diverged, so that texts are not finite.
        """
        regions, positive = whole_images_and_patches(features), self.positive()
        shares = self.region_shares.training_shares(regions, positive, (targets > 0.5) & known)
        pooled = self._weighted_scores(regions, shares, positive, self.negative())
        scores: Tensor = self.level(pooled)
        return scores[None]

    def _region_weights(self, regions: Tensor, positive: Tensor) -> Tensor:
        """Return the fraction of each region in the column of each label, ``(n, 1 + p, c)``."""
        shares: Tensor = self.region_shares(regions, positive)
        return shares
