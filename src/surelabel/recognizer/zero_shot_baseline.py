"""Zero-shot baseline: predictions of the frozen encoder, to compare with a recognizer."""

from dataclasses import replace

import numpy as np
import torch

from surelabel.config import Choice, Run
from surelabel.errors import ConfigError
from surelabel.features import encode_image_files, normalize_precomputed_features
from surelabel.recognizer.calibration_record import shipped_calibration
from surelabel.recognizer.fitting import make_method
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import LabelledFeatures, Predictions


@torch.no_grad()
def predict_zero_shot_baseline(
    recognizer: Recognizer, test: LabelledInput, predictions: Predictions
) -> Predictions | None:
    """Return zero-shot predictions of the same images, labels and encoder.

    They are calibrated if the encoder ships with a calibration. Cached features are reused; each
    other image takes one pass of the encoder.

    Args:
        recognizer: Recognizer that the baseline is compared with.
        test: Test images or precomputed features.
        predictions: Predictions of the recognizer for ``test``.

    Returns:
        The predictions; None if the recognizer is itself zero-shot, if its encoder was trained
        with it or has no text encoder, or if an image changed since ``predictions``.
    """
    run = Run(encoder=recognizer.run.encoder, method=Choice("zero_shot"))
    if _is_zero_shot(recognizer) or "pixels" in recognizer.method.needs:
        return None
    try:
        method = make_method(run, recognizer.encoder, recognizer.names_with_aliases)
    except ConfigError:  # image-only encoder
        return None
    if isinstance(test, LabelledFeatures):
        encoded = normalize_precomputed_features(test.features, width=recognizer.encoder.width)
    else:
        paths = list(predictions.paths)
        encoded = encode_image_files(recognizer.encoder, paths, cache=recognizer.cache)
    if len(encoded.rows) < len(predictions):
        return None
    if list(encoded.hashes) != list(predictions.hashes or encoded.hashes):
        return None
    scores = method(encoded.features).cpu().numpy().astype(np.float32)
    baseline = Predictions(predictions.paths, predictions.names, scores)
    calibration = shipped_calibration(run, recognizer.encoder)
    if calibration is None:
        return baseline
    logits = calibration.logits(scores).astype(np.float32)
    return replace(baseline, logits=logits, calibration=calibration.description)


def _is_zero_shot(recognizer: Recognizer) -> bool:
    """Return whether the method is zero-shot with default settings, for any prompt templates."""
    method = recognizer.run.method
    return method.name == "zero_shot" and not method.settings.keys() - {"templates"}
