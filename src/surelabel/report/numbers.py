"""The numbers of a report as one JSON file."""

import json
import math
from typing import Any

import numpy as np

from surelabel.evaluation import Evaluation, Example
from surelabel.report.figures import reliability_of
from surelabel.report.labels import mean_probability, positives, prevalence

FORMAT = "surelabel report 1"


def numbers(evaluation: Evaluation, before: Evaluation | None) -> str:
    """Everything that was measured; what is undefined is ``null``. Strictly valid JSON."""
    predictions = evaluation.predictions
    found = {
        "format": FORMAT,
        "model": predictions.model,
        "calibration": predictions.calibration,
        "pictures": len(predictions),
        "decisions": int(evaluation.known.sum()),
        "names": list(predictions.names),
        "summary": evaluation.summary,
        "floor": evaluation.floor,
        "class_means": evaluation.class_means,
        "class_floor": evaluation.class_floor,
        "undefined": evaluation.undefined,
        "before": before and _brief(before),
        "per_class": {
            "positives": positives(evaluation),
            "known": evaluation.known.sum(axis=0),
            "prevalence": prevalence(evaluation),
            "mean_probability": mean_probability(evaluation),
            **evaluation.per_class,
        },
        "reliability": _reliability(evaluation),
        "worst": [_example(e) for e in evaluation.worst],
        "best": [_example(e) for e in evaluation.best],
        "skipped": [{"path": s.path, "reason": s.reason} for s in predictions.skipped],
    }
    return json.dumps(_plain(found), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _brief(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "model": evaluation.predictions.model,
        "calibration": evaluation.predictions.calibration,
        "summary": evaluation.summary,
        "floor": evaluation.floor,
        "reliability": _reliability(evaluation),
    }


def _reliability(evaluation: Evaluation) -> dict[str, Any] | None:
    if evaluation.predictions.calibration is None:
        return None
    found = reliability_of(evaluation)
    return {
        "counts": found.counts,
        "confidence": found.confidence,
        "accuracy": found.accuracy,
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        "path": example.path,
        "loss": example.loss,
        "tags": [{"label": t.name, "value": t.value, "present": t.present} for t in example.tags],
        "missed": list(example.missed),
    }


def _plain(value: Any) -> Any:
    """The same with what JSON knows: arrays as lists, numbers that are not finite as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
