"""Convert the scores of a method to log-odds, and return them as predictions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.encoders import Encoder
from surelabel.links import Link
from surelabel.methods import Method
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.prediction_blocks import (
    EncodedPredictionBlock,
    compute_image_scores,
    half_precision_image_vectors,
)
from surelabel.recognizer.uncertainty import compute_uncertainty
from surelabel.recognizer.user_warnings import warn_out_of_distribution
from surelabel.recognizer.vector_normalization import row_noun
from surelabel.records import Predictions


@dataclass(frozen=True)
class ScoreConversion:
    """Conversion of the scores of a method to log-odds.

    Attributes:
        link_description: Description of log-odds without calibration: ``model``, or the loss that
            the method was fitted with.
        link: Function that converts scores to log-odds. If None, scores are not converted.
        calibration: Fitted calibration. If None, log-odds are not calibrated.
        tree: Projection of the log-odds of the link to a tree of labels, or None. A calibration
            contains its own projection.
    """

    link_description: str
    link: Link | None
    calibration: CalibrationRecord | None
    tree: LabelTreeProjection | None = None

    @property
    def description(self) -> str | None:
        """Return the description of the calibration or of the link, or None without log-odds."""
        if self.calibration:
            return self.calibration.description
        return self.link_description if self.link else None

    def calibrator_input(self, scores: npt.NDArray[np.float32]) -> Array:
        """Return log-odds before calibration ``(n, c)``, or the scores if there is no link."""
        raw: Array = scores.astype(np.float64)
        return self.link.logits(raw) if self.link else raw

    def logits(
        self, scores: npt.NDArray[np.float32], vectors: npt.NDArray[np.float16]
    ) -> npt.NDArray[np.float32] | None:
        """Return log-odds in [-40, 40], ``(n, c)``, or None without link and calibration.

        Args:
            scores: Scores of n images and c labels, ``(n, c)``.
            vectors: Vectors of the images, ``(n, d)``.
        """
        if self.calibration:
            raw = self.calibrator_input(scores)
            return self.calibration.logits(raw, vectors).astype(np.float32)
        if self.link:
            logits = self.calibrator_input(scores).clip(-LOGIT_LIMIT, LOGIT_LIMIT)
            return (self.tree.logits(logits) if self.tree else logits).astype(np.float32)
        return None


def predict_encoded_blocks(
    blocks: Iterable[EncodedPredictionBlock],
    names: Sequence[str],
    method: Method,
    encoder: Encoder,
    conversion: ScoreConversion,
    fingerprint: str,
    uncertainty_kind: str | None = None,
) -> Iterator[Predictions]:
    """Yield the predictions of each block, then warn if images are out of distribution.

    Args:
        blocks: Features of blocks of images.
        names: Labels, length c.
        method: Fitted method.
        encoder: Encoder that computed the features.
        conversion: Conversion of the scores to log-odds.
        fingerprint: Fingerprint of the recognizer.
        uncertainty_kind: Kind of uncertainty that the predictions contain. If None, they contain
            no uncertainty.
    """
    n_images, vector_sum = 0, torch.zeros(encoder.width, dtype=torch.float64)
    for block in blocks:
        features = None if block.encoded is None else block.encoded.features
        if features is None:
            scores = np.empty((0, len(names)), np.float32)
            vectors = np.empty((0, encoder.width), np.float16)
        else:
            pooled = features.pooled.cpu()
            vector_sum += pooled.double().sum(dim=0)
            n_images += len(pooled)
            scores = compute_image_scores(method, features)
            vectors = half_precision_image_vectors(features)
        logits = conversion.logits(scores, vectors)
        uncertainty = None
        if uncertainty_kind is not None:
            uncertainty = (
                np.empty_like(scores)
                if features is None
                else compute_uncertainty(uncertainty_kind, method, features, logits)
            )
        yield Predictions(
            paths=block.paths,
            names=names,
            scores=scores,
            logits=logits,
            calibration=conversion.description,
            model=fingerprint,
            features=vectors,
            skipped=block.skipped,
            encoding_stats=block.encoding_stats,
            hashes=block.encoded.hashes or None if block.encoded else None,
            uncertainty=uncertainty,
            uncertainty_kind=uncertainty_kind,
            engine=encoder.engine.provenance,
            row_noun=row_noun(encoder),
        )
    warn_out_of_distribution(encoder, method, vector_sum, n_images)
