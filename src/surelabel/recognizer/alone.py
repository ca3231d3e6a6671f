"""What the encoder alone says of the same pictures: plain zero-shot, in one pass."""

from dataclasses import replace

import numpy as np
import torch

from surelabel.config import Choice, Run
from surelabel.encoding import encode, ready_made
from surelabel.errors import ConfigError
from surelabel.recognizer.calibrating import shipped
from surelabel.recognizer.fitting import new_method
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.sources import Labelled
from surelabel.records import LabelledFeatures, Predictions


@torch.no_grad()
def alone(recognizer: Recognizer, test: Labelled, judged: Predictions) -> Predictions | None:
    """The same pictures and names with nothing adapted, calibrated where the encoder ships with it.

    Pooled vectors that are in the cache are taken from there; the others cost one pass each.

    Args:
        recognizer: What is judged.
        test: What it was judged on.
        judged: What it said of that.

    Returns:
        None where the recognizer is the plain encoder itself, where its encoder was trained with
        it or knows no texts, or where a picture changed meanwhile.
    """
    plain = Run(backbone=recognizer.run.backbone, method=Choice("zero_shot"))
    if _is_plain(recognizer) or "pixels" in recognizer.method.needs:
        return None
    try:
        method = new_method(plain, recognizer.backbone, recognizer.spellings)
    except ConfigError:  # the encoder knows no texts
        return None
    if isinstance(test, LabelledFeatures):
        found = ready_made(test.features, width=recognizer.backbone.width)
    else:
        found = encode(recognizer.backbone, list(judged.paths), cache=recognizer.cache)
    if len(found.rows) < len(judged) or list(found.hashes) != list(judged.hashes or found.hashes):
        return None
    scores = method(found.features).cpu().numpy().astype(np.float32)
    said = Predictions(judged.paths, judged.names, scores)
    calibration = shipped(plain, recognizer.backbone)
    if calibration is None:
        return said
    logits = calibration.logits(scores).astype(np.float32)
    return replace(said, logits=logits, calibration=calibration.about)


def _is_plain(recognizer: Recognizer) -> bool:
    """Zero-shot in its usual domain, whatever the prompts."""
    method = recognizer.run.method
    return method.name == "zero_shot" and not method.settings.keys() - {"templates"}
