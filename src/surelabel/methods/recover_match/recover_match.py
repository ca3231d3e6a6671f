"""Score labels with Recover and Match, which matches recovered region vectors to labels."""

import warnings
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.counts import format_count
from surelabel.encoders import Encoder, prompt_templates
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.inference_batches.inference_batches import inference_batches
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.recover_match.ladder import LadderLocalAdapter
from surelabel.methods.recover_match.prompted_labels import PromptedLabels
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.methods.text_scoring.scale_and_bias import initial_scale_and_bias
from surelabel.records import Features
from surelabel.transport import TransportPlan

IMAGES_PER_BATCH = 32  # images per batch outside training
TEXT_RATE = 0.1  # learning rate of the text prompts, relative to that of the other parameters
MAX_TRAINING_STEPS = 1000  # limit of the iterations of a transport plan in training
MIN_SLOPE = 1.0  # smallest initial slope; with smaller slopes, the gradients vanish


class CosineSimilarities(NamedTuple):
    """Store the cosines between a batch of images and the labels.

    Attributes:
        local: Cosines of regions, ``(n, p, c)``.
        whole: Cosines of whole images, ``(n, c)``.
        reference: Cosines of regions and the labels of the fit, ``(n, p, r)``. If the labels are
            those of the fit, the value is None.
        frozen: Cosines of the regions of the frozen encoder, ``(n, p, c)``. If these cosines are
            not needed, the value is None.
    """

    local: Tensor
    whole: Tensor
    reference: Tensor | None = None
    frozen: Tensor | None = None


class RecoverMatch(Method):
    """Score labels by the cosine of the whole image and the mean cosine of matched regions.

        local = mean cosine of the regions that are matched to a label
        whole = cosine of the whole image
        score = ((a_1 · local + b_1) + (a_2 · whole + b_2)) / 2

    a_1 and a_2 are learned scales, and b_1 and b_2 are learned biases.

    A ladder, a side network beside the frozen blocks, computes region vectors from value-to-value
    attention and from text-guided selections. If ``text_prompts`` is above 0, prompt tokens in the
    text tower are also trained. Regions and labels are matched by optimal transport. In training,
    the transport plan of the positive labels is regularized towards the teacher plan, which is
    computed with the frozen encoder.

    Text-guided selections, region weights and plan are computed for the labels of the fit, even if
    other labels are scored. The plan is extended to a new label by ``TransportPlan.column_shares``,
    so the score of a label does not depend on other new labels. With ``transport=bipartite``, the
    plan cannot be extended to new labels, and is computed for all scored labels.

    Args:
        encoder: Encoder with a ViT and a text tower.
        names: Labels. Other labels can be scored after the fit; see ``use_fit_labels``.
        templates: Prompt templates; see ``TextScorer``.
        depth: Number of last blocks of the tower with a text-guided selection, >= 1.
        first_block: Index of the first block in the sum of self-aware attention, 0-based, >= 0. The
            last ``depth`` blocks are always part of the sum.
        self_aware: Whether region vectors are computed from self-aware attention. If False, region
            vectors are computed from the last tokens of the tower.
        text_guided_selection: Whether text-guided selections are added.
        text_prompts: Number of learned tokens in each of the last text layers, >= 0.
        text_prompt_layers: Number of last text layers with prompts, >= 1, limited by the depth of
            the tower. If None, the last quarter of the layers has prompts, such as 3 of 12 layers.
        visual_prompts: Number of learned tokens in each of the last ``depth`` blocks, >= 0.
        transport: Entry of ``TRANSPORTS`` that matches regions to labels.
        regularization: Entropic regularization of the transport plan (lambda1 in the paper), > 0.
        knowledge_weight: Weight of the teacher plan in training (lambda2 in the paper), >= 0.
        presence_scale: Inverse temperature, >= 0, of the softmax over regions. This softmax
            computes the weight of each region from its highest cosine with any label. If 0, all
            regions have equal weights. The temperature of 0.1 in the released code corresponds to
            10.
        variant: Version of the method: ``"code"`` for the released code, ``"paper"`` for the paper.
            The code sums self-aware attention from ``first_block`` on, but the paper sums it only
            in the last ``depth`` blocks. The masks also differ; see ``LadderTextGuidedSelection``.

    Raises:
        ConfigError, UnknownName: If a setting is unknown or out of range, or the encoder has no ViT
            or no texts.

    Source:
        Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through
        Knowledge-Constrained Optimal Transport, CVPR 2025, arXiv:2503.15337, eq. 2 to 14.

    Differs:
        In the released code, the number of labels is a factor of the temperature of the local
        scores, which therefore changes with the list of labels. Here local scores are means, which
        do not contain this factor. Temperatures are learned as logarithms, and are initialized by
        Platt scaling of the cosines. Local and global scores each have a bias, as proper losses
        require. The loss is the mean of the losses of local and global scores, as in the paper; the
        released code uses the sum. The iteration of a transport plan stops when the error of the
        plan is small enough, independently for each image. The authors compute the plan for all
        scored labels, so that added labels change the scores of other labels. The mAP of unseen
        labels is 60.9 with both plans, and the differences of the mAP and of the ECE are not
        significant (docs/open-vocabulary.md).

        The paper ranks by ``ranking_scores``. ``forward`` ranks images better (53.7 instead of 50.5
        mAP, as described below), and ``ranking_scores`` ranks the labels of an image better (45.0
        instead of 42.7 F1 at 3).

        Settings were chosen with version 0.1.0, whose plan was computed for all scored labels, on
        500 validation images of scenes-80 with `tiny-vit`. The method was fitted on the 853
        training images in which all 17 unseen labels are negative. Each pair of numbers is the mAP
        of the 17 unseen labels and the mAP of all 65 labels. Zero-shot scores have 50.0 and 52.5;
        if the score of the highest-scoring frozen patch is added, they have 51.6 and 53.9. The
        default recipe has 53.7 and 58.6. With ``multi_matching``, the loss of the paper, the pair
        is 53.5 and 58.5. After half the epochs, both losses have 53.1 and 56.9 in the mean of three
        seeds, but only the scores of the default loss are log-odds.

        With four prompts per text layer, the pair is 52.5 and 56.4. Prompts improve the results in
        the paper, but not here, where the text tower has two layers. With averaged instead of
        matched regions, the pair is 48.5 and 52.4; without the teacher plan, it is 53.0 and 56.6.
        With selections initialized to zero, it is 52.3 and 55.8; with temperatures initialized to
        the scale of the encoder, it is 49.9 and 53.5.
    """

    learns_from = "labels"
    needs = ("ladder",)
    open_vocabulary = True
    recipe = TrainingRecipe(
        epochs=8,
        batch_size=32,
        micro_batch_size=32,
        learning_rate=0.001,
        weight_decay=0.01,
        warm_up=0.1,
    )

    fit_texts: Tensor | None
    is_new: Tensor | None

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        depth: int = 3,
        first_block: int = 0,
        self_aware: bool = True,
        text_guided_selection: bool = True,
        text_prompts: int = 0,
        text_prompt_layers: int | None = None,
        visual_prompts: int = 0,
        transport: str = "sinkhorn",
        regularization: float = 0.1,
        knowledge_weight: float = 0.05,
        presence_scale: float = 10.0,
        variant: Literal["paper", "code"] = "code",
    ):
        super().__init__()
        self.learning_rate_scales = {"prompted_labels": TEXT_RATE}
        self.names = self.fit_names = list(names)
        for name, count in (("text_prompts", text_prompts), ("visual_prompts", visual_prompts)):
            if count < 0:
                raise ConfigError(f"{name} must be 0 or more; got {count}.")
        if text_prompt_layers is not None and text_prompt_layers < 1:
            raise ConfigError(f"text_prompt_layers must be 1 or more; got {text_prompt_layers}.")
        if variant not in ("paper", "code"):
            raise ConfigError(f'variant must be "paper" or "code"; got {variant!r}.')
        encoder.last_blocks(depth).check_first_block(first_block)
        self.ladder_blocks = (first_block, depth)
        self.matching = RegionMatching(
            transport=transport,
            regularization=regularization,
            knowledge_weight=knowledge_weight,
            presence_scale=presence_scale,
            logit_scale=encoder.scale,
        )
        self.prompted_labels = PromptedLabels(
            encoder,
            names,
            prompt_templates(templates),
            prompts=text_prompts,
            layers=text_prompt_layers,
        )
        self.local_adapter = LadderLocalAdapter(
            encoder,
            depth=depth,
            self_aware=self_aware,
            text_guided_selection=text_guided_selection,
            prompts=visual_prompts,
            variant=variant,
        )
        self.log_slopes = nn.Parameter(torch.full((2,), encoder.scale).log())  # local, global
        self.biases = nn.Parameter(torch.zeros(2))
        self.register_buffer("fit_texts", None, persistent=False)
        self.register_buffer("is_new", None, persistent=False)
        self._n_unconverged = 0
        self.to(self.prompted_labels.frozen.device)

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether labels that are added after the fit change the scores of other labels."""
        return self.matching.needs_all_labels

    def use_fit_labels(self, encoder: Encoder, names: Sequence[str]) -> None:
        """Encode the labels of the fit, for which selections, region weights and plan are computed.

        Args:
            encoder: Encoder of this method.
            names: Labels of the fit.
        """
        self.fit_names, self.fit_texts, self.is_new = list(names), None, None
        if self.fit_names != self.names:
            self.fit_texts = self.prompted_labels.encode_other_labels(encoder, names)
            is_new = [name not in self.fit_names for name in self.names]
            self.is_new = torch.tensor(is_new, device=self.biases.device)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize scales and biases by Platt scaling of the cosines, converted by ``link``."""
        head_cosines = self._map_batches(
            features, lambda cosines: self._head_cosines(cosines).transpose(0, 1)
        )
        for head, cosines in enumerate(head_cosines.unbind(1)):
            slope, bias = initial_scale_and_bias(cosines, targets, known, link, min_slope=MIN_SLOPE)
            self.log_slopes[head], self.biases[head] = slope.log(), bias

    def forward(self, features: Features) -> Tensor:
        """Return the mean of the local and the global scores, ``(n, c)``.

        Raises:
            NotConverged: If the transport plan of an image did not converge.
        """
        return self._map_batches(
            features, lambda cosines: self._head_scores(self._head_cosines(cosines)).mean(dim=0)
        )

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return local and global scores ``(2, n, c)``, computed with the teacher plan.

        If a transport plan does not converge, its last values are used. At the end of training, a
        warning states the number of plans that did not converge.

        Raises:
            ConfigError: If training diverged, so that cosines are not finite.
        """
        batch = self._to_encoder_device(features)
        cosines = self._cosine_similarities(batch, with_frozen=self.matching.knowledge_weight > 0)
        if not cosines.local.isfinite().all():
            raise ConfigError(
                "Training diverged: cosines of regions and labels are not finite. Use a smaller "
                "learning_rate."
            )
        positive = ((targets > 0.5) & known).to(cosines.local.device)
        plan = self.matching.plan(
            cosines.local, cosines.frozen, positive, max_steps=MAX_TRAINING_STEPS
        )
        self._n_unconverged += int((~plan.converged).sum())
        scores = self._head_scores(self._head_cosines(cosines, plan.accept_unconverged()))
        return scores.to(features.pooled.device)

    @torch.no_grad()
    def ranking_scores(self, features: Features) -> Tensor:
        """Return the ranking scores of Recover and Match: the mean of two softmaxes, ``(n, c)``.

        The first softmax is computed over the local scores of the labels, the second over the
        global scores.
        """
        return self._map_batches(
            features,
            lambda cosines: (
                self._head_scores(self._head_cosines(cosines)).softmax(dim=-1).mean(dim=0)
            ),
        )

    @torch.no_grad()
    def heat_maps(self, features: Features) -> Tensor:
        """Return the contribution of each region to each local cosine, ``(n, c, down, across)``.

        The contribution of a region to a label is the cosine, multiplied by the fraction of the
        region in the transport plan of the label. If the cosine is not above 0, the fraction is
        replaced by 1 / p, where p is the number of regions. Without this replacement, the region
        with the smallest fraction would have the highest contribution to a label with negative
        cosines.

        Maps of 17 unseen labels were measured on 500 validation images, after a fit on 48 other
        labels of scenes-80 with version 0.1.0. The region with the highest contribution is inside a
        box of the label in 75.6 % of the cases. If maps contain only the plan, the percentage is
        72.1 %; if maps contain only the cosine, it is 77.9 %.
        """
        contributions = self._map_batches(features, self._region_contributions)
        maps: Tensor = contributions.transpose(1, 2).unflatten(2, features.grid or ())
        return maps

    @torch.no_grad()
    def similarity_maps(self, features: Features) -> Tensor:
        """Return the cosines of regions with each label, ``(n, c, down, across)``."""
        cosines = self._map_batches(features, lambda cosines: cosines.local).transpose(1, 2)
        maps: Tensor = cosines.unflatten(2, features.grid or ())
        return maps

    @torch.no_grad()
    def presence_maps(self, features: Features) -> Tensor:
        """Return the weights of regions in the plan, ``(n, down, across)``; each map sums to 1."""
        weights = self._map_batches(
            features,
            lambda cosines: self.matching.region_weights(
                cosines.local if cosines.reference is None else cosines.reference
            ),
        )
        maps: Tensor = weights.unflatten(1, features.grid or ())
        return maps

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

    def _map_batches(
        self, features: Features, compute: Callable[[CosineSimilarities], Tensor]
    ) -> Tensor:
        """Apply a function to the cosines of all images; outside training, use small batches."""
        rows = torch.arange(features.pooled.shape[0])
        batches = [rows] if self.training else inference_batches(rows, IMAGES_PER_BATCH)
        results = [
            compute(self._cosine_similarities(self._to_encoder_device(features, batch)))
            for batch in batches
        ]
        return torch.cat(results).to(features.pooled.device)

    def _to_encoder_device(
        self, features: Features, rows: Tensor | slice = slice(None)
    ) -> Features:
        """Return the required features of some images on the device of the encoder."""
        device, self_aware_sum = self.biases.device, features.self_aware_sum
        return Features(
            pooled=features.pooled[rows].to(device),
            grid=features.grid,
            layers={k: tokens[rows].to(device) for k, tokens in (features.layers or {}).items()},
            self_aware_sum=None if self_aware_sum is None else self_aware_sum[rows].to(device),
        )

    def _cosine_similarities(
        self, features: Features, *, with_frozen: bool = False
    ) -> CosineSimilarities:
        texts, fit_texts, adapter = self.prompted_labels(), self.fit_texts, self.local_adapter
        outputs = adapter.run_blocks(features)
        regions = adapter.region_vectors(
            features, outputs, texts if fit_texts is None else fit_texts
        )
        local = _recover_match_cosines(regions, texts)
        whole = _recover_match_cosines(adapter.image_vectors(features, outputs), texts)
        reference = None if fit_texts is None else _recover_match_cosines(regions, fit_texts)
        if not with_frozen:
            return CosineSimilarities(local, whole, reference)
        frozen_regions = adapter.frozen_region_vectors(features, outputs)
        frozen = _recover_match_cosines(frozen_regions, self.prompted_labels.frozen)
        return CosineSimilarities(local, whole, reference, frozen)

    def _region_contributions(self, cosines: CosineSimilarities) -> Tensor:
        """Return the contribution of each region to each local cosine, ``(n, p, c)``."""
        local = cosines.local
        equal_shares = torch.full_like(local, 1 / local.shape[1])
        shares = self.matching.region_shares(local, cosines.reference, self.is_new)
        return local * torch.where(local > 0, shares, equal_shares)

    def _head_cosines(
        self, cosines: CosineSimilarities, plan: TransportPlan | None = None
    ) -> Tensor:
        """Return the pooled cosines of matched regions and those of images, ``(2, n, c)``."""
        local = self.matching.pool_similarities(
            cosines.local, plan, reference=cosines.reference, is_new=self.is_new
        )
        return torch.stack([local, cosines.whole])

    def _head_scores(self, head_cosines: Tensor) -> Tensor:
        return self.log_slopes.exp()[:, None, None] * head_cosines + self.biases[:, None, None]


def _recover_match_cosines(vectors: Tensor, texts: Tensor) -> Tensor:
    """Return the cosines of vectors ``(…, d)`` and texts ``(c, d)``, in float32 or wider."""
    dtype = torch.promote_types(vectors.dtype, torch.float32)
    with torch.autocast(vectors.device.type, enabled=False):
        return F.normalize(vectors.to(dtype), dim=-1) @ F.normalize(texts.to(dtype), dim=-1).T
