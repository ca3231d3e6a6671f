"""Predict with the frozen encoder, as a zero-shot baseline for a recognizer."""

import numpy as np

from surelabel.config import Choice, Run
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.encoders.image_only.precomputed_scores import PrecomputedScores
from surelabel.errors import ConfigError
from surelabel.recognizer.calibration_record import shipped_calibration_record
from surelabel.recognizer.fitting import make_method_for_fitting, model_link_of_method
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.prediction_blocks import (
    compute_image_scores,
    encode_prediction_blocks,
    images_per_prediction_block,
)
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.score_conversion import ScoreConversion
from surelabel.records import Images, LabelledFeatures, Predictions
from surelabel.records.calibration_description import MODEL


def predict_zero_shot_baseline(
    recognizer: Recognizer, test: LabelledInput, predictions: Predictions
) -> Predictions | None:
    """Return zero-shot predictions with the labels and the encoder of a recognizer.

    The predictions have probabilities if a calibration is shipped with the encoder, or if the
    encoder has a bias, such as SigLIP. Cached features are reused; each image without cached
    features requires one encoder pass.

    Args:
        recognizer: Recognizer that is compared with the baseline.
        test: Test images or precomputed features.
        predictions: Predictions of the recognizer for ``test``.

    Returns:
        Zero-shot predictions of ``test``. The result is None if the recognizer is itself zero-shot
        or uses precomputed scores or an exported file, or if its encoder was trained. The result is
        also None if there is no text encoder, or if an image file changed.
    """
    run = Run(encoder=recognizer.run.encoder, method=Choice("zero_shot"))
    if _is_recognizer_zero_shot_baseline(recognizer) or "pixels" in recognizer.method.needs:
        return None
    if isinstance(recognizer.encoder, PrecomputedScores | ExportedModel):
        return None
    try:
        method = make_method_for_fitting(run, recognizer.encoder, recognizer.names_with_aliases)
    except ConfigError:  # image-only encoder
        return None
    source = test if isinstance(test, LabelledFeatures) else Images(list(predictions.paths))
    parts, hashes = [], list[str]()
    for block in encode_prediction_blocks(
        source,
        method,
        recognizer.encoder,
        recognizer.cache,
        block_size=images_per_prediction_block(method),
    ):
        if block.encoded is None or block.skipped:
            return None
        parts.append(compute_image_scores(method, block.encoded.features))
        hashes += block.encoded.hashes
    scores = np.concatenate(parts)
    if len(scores) < len(predictions) or hashes != list(predictions.hashes or hashes):
        return None
    calibration = shipped_calibration_record(run, recognizer.encoder)
    conversion = ScoreConversion(MODEL, model_link_of_method(method), calibration)
    vectors = np.empty((len(scores), 0), dtype=np.float16)  # the shipped calibration uses none
    return Predictions(
        predictions.paths,
        predictions.names,
        scores,
        conversion.logits(scores, vectors),
        conversion.description,
    )


def _is_recognizer_zero_shot_baseline(recognizer: Recognizer) -> bool:
    """Return True if the method is zero-shot with default settings, for any prompt templates."""
    method = recognizer.run.method
    return method.name == "zero_shot" and not method.settings.keys() - {"templates"}
