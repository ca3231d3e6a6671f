"""Evaluate retrieval between images and captions by scores and uncertainties of pairs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from surelabel.errors import InputError
from surelabel.evaluation.false_negative_detection import false_negative_auroc
from surelabel.evaluation.pair_direction import (
    PairDirection,
    PairValues,
    evaluate_pair_direction,
)
from surelabel.evaluation.pair_intervals import pair_direction_intervals
from surelabel.records.pairs import PairFeatures, Pairs
from surelabel.records.relevance import Relevance
from surelabel.retrieval.caption_retrieval.image_folds import (
    IMAGES_PER_FOLD,
    FoldRecall,
    consecutive_image_folds,
    recall_in_image_folds,
)
from surelabel.retrieval.caption_retrieval.relevant_items import (
    relevant_captions_of_images,
    relevant_images_of_captions,
)
from surelabel.shapes import check_shapes
from surelabel.summaries import Summary

IMAGE_TO_CAPTION, CAPTION_TO_IMAGE = "image_to_caption", "caption_to_image"


@dataclass(frozen=True)
class PairEvaluation:
    """Retrieval metrics of images and captions, and metrics of the uncertainty of pairs.

    Attributes:
        n_images: Number of images n.
        n_captions: Number of captions s.
        directions: Metrics by direction, ``image_to_caption`` and ``caption_to_image``.
        folds: Mean recall over folds of images, or None if the images do not fill two folds.
        threshold: Lowest grade of a relevant pair, or None if only own captions are relevant.
        false_negative_auroc: AUROC of the relevant pairs of an image and a caption of another
            image, against pairs with grade 0, by quantity. If only own captions are relevant, the
            mapping is empty.
    """

    n_images: int
    n_captions: int
    directions: Mapping[str, PairDirection]
    folds: FoldRecall | None = None
    threshold: float | None = None
    false_negative_auroc: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return the recalls, further metrics with intervals, and the AUROC of errors."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    @property
    def rsum(self) -> float:
        """Return the sum of the recalls of own items at 1, 5 and 10, in both directions, in %."""
        return 100 * sum(sum(d.recalls.values()) for d in self.directions.values())

    def as_dict(self) -> dict[str, object]:
        """Return all metrics as a dictionary for JSON, in which undefined values are NaN."""
        summary: dict[str, object] = {
            "images": self.n_images,
            "captions": self.n_captions,
            "threshold": self.threshold,
            "rsum": self.rsum,
            **{name: direction.as_dict() for name, direction in self.directions.items()},
        }
        if self.folds is not None:
            summary["folds"] = {
                "folds": self.folds.n_folds,
                "rsum": self.folds.rsum,
                IMAGE_TO_CAPTION: _recalls_as_dict(self.folds.image_to_caption),
                CAPTION_TO_IMAGE: _recalls_as_dict(self.folds.caption_to_image),
            }
        if self.false_negative_auroc:
            summary["false_negative_auroc"] = dict(self.false_negative_auroc)
        return summary

    def _summary(self) -> Summary:
        properties: dict[str, object] = {
            "images": self.n_images,
            "captions": self.n_captions,
            "rsum": self.rsum,
        }
        names = list(self.directions[IMAGE_TO_CAPTION].metrics)
        rows = [
            (name, *(_metric_text(d, name) for d in self.directions.values())) for name in names
        ]
        rows += [
            (f"auroc of {name}", *(_auroc_text(d, name) for d in self.directions.values()))
            for name in self.directions[IMAGE_TO_CAPTION].error_predictions
        ]
        header = ("metric", "image to caption", "caption to image")
        return Summary("PairEvaluation", properties, header, rows, len(rows))


def evaluate_pair_scores(
    scores: PairValues,
    pairs: Pairs | PairFeatures,
    variances: PairValues | None = None,
    relevance: Relevance | None = None,
    *,
    threshold: float = 1.0,
    images_per_fold: int = IMAGES_PER_FOLD,
    seed: int = 0,
) -> PairEvaluation:
    """Evaluate the scores of all pairs of images and captions in both directions of retrieval.

    Each image ranks all captions, and each caption ranks all images. Items with equal scores are
    ranked by row. Own captions of an image are always relevant. With graded relevance, all pairs
    with a sufficient grade are relevant as well, and the metrics of all relevant pairs have the
    prefix ``relevant_``.

    Args:
        scores: Finite scores of n images and s captions, ``(n, s)``, higher for better matches.
        pairs: Images and captions in the order of the scores.
        variances: Finite uncertainty of each pair, ``(n, s)``, lower for more confident matches,
            such as the match variance. If None, only the score and the margin are evaluated as
            predictors of errors.
        relevance: Graded relevance. If None, the relevance of ``pairs`` is used.
        threshold: Lowest grade of a relevant pair, in (0, 1].
        images_per_fold: Number of images of a fold, >= 1, such as 1,000 for COCO 1K. Without at
            least two folds of equal size, no fold is evaluated.
        seed: Seed of the bootstrap and of the sample of true negatives.

    Returns:
        Metrics of both directions, with 95 % bootstrap intervals over images.

    Raises:
        InputError: If the shapes differ, if no image has a caption, or if a score or the
            uncertainty of an evaluated pair is not finite. If ``threshold`` is not in (0, 1], or
            ``images_per_fold`` is below 1.

    Source:
        Metrics: Chun et al., ECCV Caption, ECCV 2022. Uncertainty against accuracy: Chun, PCME++,
        ICLR 2024, and VACSR, arXiv:2605.30968, section 4.4. The null predictors (minus score and
        minus margin) are ours.

    Example:
        >>> pairs = Pairs(["a.jpg", "b.jpg"], ["a dog", "a cat"], [0, 1])
        >>> evaluate_pair_scores(np.array([[0.9, 0.1], [0.2, 0.8]]), pairs).rsum
        600.0
    """
    n_images = _image_count(pairs)
    check_shapes(scores=(scores, "n s"), variances=(variances, "n s"))
    if scores.shape != (n_images, len(pairs)):
        raise InputError(
            f"scores must have one row per image and one column per caption, with shape "
            f"({n_images}, {len(pairs)}); got shape {scores.shape}. Transpose the scores, or "
            "compute the scores of these pairs."
        )
    if images_per_fold < 1:
        raise InputError(
            f"images_per_fold must be 1 or more; got {images_per_fold}. Use 1000 for COCO 1K."
        )
    relevance = pairs.relevance if relevance is None else relevance
    directions = evaluate_pair_directions(scores, pairs, variances, relevance, threshold=threshold)
    limit = None if relevance is None else threshold
    has_folds = n_images >= 2 * images_per_fold and n_images % images_per_fold == 0
    folds = consecutive_image_folds(n_images, images_per_fold) if has_folds else None
    captions = relevant_captions_of_images(pairs.image_rows, n_images, relevance)
    return PairEvaluation(
        n_images=n_images,
        n_captions=len(pairs),
        directions={
            name: replace(direction, intervals=pair_direction_intervals(direction, n_images, seed))
            for name, direction in directions.items()
        },
        folds=None if folds is None else recall_in_image_folds(scores, pairs.image_rows, folds),
        threshold=limit,
        false_negative_auroc={}
        if limit is None
        else false_negative_auroc(
            scores, captions, variances=variances, threshold=limit, seed=seed
        ),
    )


def evaluate_pair_directions(
    scores: PairValues,
    pairs: Pairs | PairFeatures,
    variances: PairValues | None,
    relevance: Relevance | None,
    *,
    threshold: float = 1.0,
) -> dict[str, PairDirection]:
    """Return the metrics of both directions of retrieval, without intervals.

    Args:
        scores: Finite scores of n images and s captions, ``(n, s)``.
        pairs: Images and captions in the order of the scores.
        variances: Uncertainty of each pair, ``(n, s)``, or None.
        relevance: Graded relevance. If None, only own captions are relevant.
        threshold: Lowest grade of a relevant pair, in (0, 1].

    Raises:
        InputError: Under the conditions of :func:`evaluate_pair_scores`.
    """
    n_images = _image_count(pairs)
    limit = None if relevance is None else threshold
    return {
        IMAGE_TO_CAPTION: evaluate_pair_direction(
            scores,
            relevant_captions_of_images(pairs.image_rows, n_images, relevance),
            np.arange(n_images),
            variances=variances,
            threshold=limit,
        ),
        CAPTION_TO_IMAGE: evaluate_pair_direction(
            scores.T,
            relevant_images_of_captions(pairs.image_rows, n_images, relevance),
            pairs.image_rows,
            variances=None if variances is None else variances.T,
            threshold=limit,
        ),
    }


def _image_count(pairs: Pairs | PairFeatures) -> int:
    return len(pairs.paths if isinstance(pairs, Pairs) else pairs.image_vectors)


def _recalls_as_dict(recalls: Mapping[int, float]) -> dict[str, float]:
    return {f"recall_at_{k}": value for k, value in recalls.items()}


def _metric_text(direction: PairDirection, metric: str) -> str:
    """Return the value of a metric with its interval as text."""
    text = f"{direction.metrics[metric]:.4g}"
    interval = direction.intervals.get(metric)
    return text if interval is None else f"{text} ({interval.low:.4g} to {interval.high:.4g})"


def _auroc_text(direction: PairDirection, quantity: str) -> str:
    prediction = direction.error_predictions.get(quantity)
    return "" if prediction is None else f"{prediction.auroc:.4g}"
