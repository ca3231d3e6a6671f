"""Score labels with CoOp and with image regions that optimal transport matches to the labels."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.methods.coop import CoOp
from surelabel.methods.inference_batches.inference_batches import inference_batches
from surelabel.methods.prompt_tuning.region_scores import (
    pool_region_scores,
    region_score_maps,
    whole_images_and_patches,
)
from surelabel.methods.prompt_tuning.region_shares import RegionShares
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.records import Features

IMAGES_PER_BATCH = 64  # images whose regions are matched to the labels together


class CoOpMatching(CoOp):
    """Compare an image and its matched regions with the text of a label whose context is learned.

        s_r   = tau · cos(x_r, t_c) - log mean_q exp(tau · cos(x_r, t_q))
        score = a · (s_image + Σ_r w_rc · s_r) / 2 + b

    x_r are the vector of the whole image and the patch vectors of self-aware attention. t_c, t_q,
    tau, a and b are those of ``coop``. The plan of entropic optimal transport between regions and
    labels has one column for each label. w_rc is the fraction of region r in the column of label c;
    see ``RegionMatching``. In training, the columns of the positive labels are regularized towards
    a teacher plan, which is computed with the frozen texts. No gradient is propagated through the
    plan.

    The plan is computed for the labels of the fit. The plan is extended to a new label by
    ``TransportPlan.column_shares``, so that the score of a label does not depend on other new
    labels. With ``transport=bipartite``, the plan is computed for all scored labels.

    Args:
        encoder: Encoder of images and texts with patch vectors.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit, unless the context is class-specific.
        initial_context: Words whose token embeddings initialize the context.
        context_length: Number of context vectors that are initialized at random, >= 1. If None, the
            context is initialized by ``initial_context``, or has 16 vectors if ``initial_context``
            is empty.
        class_specific: Whether each label has its own context. Other labels then need another fit.
        transport: Entry of ``TRANSPORTS`` that matches regions to labels.
        regularization: Entropic regularization of the transport plan (lambda1 in the paper), > 0.
        knowledge_weight: Weight of the teacher plan in training (lambda2 in the paper), >= 0.
        presence_scale: Inverse temperature, >= 0, of the softmax over regions. This softmax
            computes the weight of each region from its highest cosine with any label. If 0, all
            regions have equal weights.

    Raises:
        ConfigError, UnknownName: If a setting is unknown or out of range, or if the encoder has no
            text tower of open_clip or no patch vectors. Also if the context and a label together
            are longer than the text tower allows.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, section 4.3 and
        Table 7, "Ours + CoOp".

    Differs:
        In the paper, the matching is combined with a trained adapter of region vectors, and the
        loss compares labels. Here region vectors are frozen, the whole image is also a region, and
        the loss is ``binary``. The authors compute the plan for all scored labels.

        Each pair a/b is the mAP of the first 40 labels (a) and of the other labels (b) on the
        validation images of scenes-80. Fits have 10 epochs on the first 40 labels with 16 images
        each (mean of two seeds). Zero-shot scores have 53.4/49.3 with tiny-vit and 52.7/49.5 with
        tiny-rn; all further pairs have this order. ``coop`` with equal context and learning rate
        has 53.4/49.4 and 52.6/49.3. The default has 54.9/51.2 and 54.9/51.7 after training, and
        54.0/51.1 and 54.4/52.1 before training. The log loss of the other labels is 0.003 higher
        than that of ``coop``. ``dualcoop`` has 55.4/51.1 and 56.7/52.2.

        The gain comes from the regions, not from the constraints of transport. With
        ``transport=softmax``, the mAP is 55.2/51.8 and 55.2/51.8; with ``average``, it is 53.6/46.7
        and 52.5/48.4. With a ``knowledge_weight`` of 0, it is 55.1/51.3 and 54.9/51.6; with 0.2, it
        is 54.9/51.2 and 55.0/51.8. With a ``presence_scale`` of 0, it is 54.3/51.2 and 55.6/51.6.
        With a ``regularization`` of 0.05, it is 54.7/50.9 and 55.4/51.6; with 0.2, it is 54.7/50.1
        and 54.3/51.3. If only the patches are regions, the mAP is 53.4/49.2 and 54.9/51.8.
    """

    needs = ("self_aware",)
    recipe = replace(CoOp.recipe, micro_batch_size=32, learning_rate=0.002)

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "a photo of a",
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
            ConfigError: If the context is class-specific, and the labels of the fit are not those
                of the method.
        """
        self.region_shares.use_fit_labels(names, self.context)

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return the scores of one head, ``(1, n, c)``, computed with the teacher plan.

        Args:
            features: Features of n images.
            targets: Targets in [0, 1], ``(n, c)``, for c labels.
            known: True where the target is known, ``(n, c)``.

        Raises:
            ConfigError: If training diverged, so that texts are not finite.
        """
        regions, texts = whole_images_and_patches(features), self.context()
        shares = self.region_shares.training_shares(regions, texts, (targets > 0.5) & known)
        scores: Tensor = self.level(self._weighted_scores(regions, shares, texts))
        return scores[None]

    def _pooled_scores(self, features: Features) -> Tensor:
        """Return the scores of images without scale and bias, ``(n, c)``."""
        texts = self.context()
        batches = inference_batches(whole_images_and_patches(features), IMAGES_PER_BATCH)
        scores = [
            self._weighted_scores(batch, self.region_shares(batch, texts), texts)
            for batch in batches
        ]
        return torch.cat(scores)

    def _weighted_scores(self, regions: Tensor, weights: Tensor, texts: Tensor) -> Tensor:
        """Return the scores of images without scale and bias, ``(n, c)``, with given weights."""
        region_scores = self.text_scorer(regions, texts)
        scores: Tensor = (region_scores[:, 0] + pool_region_scores(region_scores, weights)) / 2
        return scores

    @torch.no_grad()
    def heat_maps(self, features: Features) -> Tensor:
        """Return the score of each label at each patch, ``(n, c, down, across)``."""
        assert features.patches is not None
        scores = self.level(self.text_scorer(features.patches, self.context()))
        return region_score_maps(scores, features.grid)
