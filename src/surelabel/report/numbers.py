"""The numbers of a report as one JSON file."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from surelabel.evaluation import Budget, Evaluation, Example
from surelabel.metrics import Reliability
from surelabel.report.binning import binned
from surelabel.report.calibrated import reliability_before
from surelabel.report.claims import ALONE, Claims, claimed, pairs_a_picture, ranked
from surelabel.report.gallery import Search
from surelabel.report.labels import mean_probability, positives, prevalence
from surelabel.report.queries import Retrieval
from surelabel.report.reliability import BINS, band, reliability_of
from surelabel.report.reliability_grid import per_label
from surelabel.report.risk_coverage import risk_coverage_of
from surelabel.report.unseen import Unseen, reliability_of_sides

FORMAT = "surelabel report 1"


def numbers(
    evaluation: Evaluation,
    before: Evaluation | None,
    retrieval: Retrieval | None = None,
    searches: Sequence[Search] = (),
    unseen: Unseen | None = None,
) -> str:
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
        "intervals": {name: asdict(found) for name, found in evaluation.intervals.items()},
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
        **_honesty(evaluation),
        "alone": evaluation.alone
        and {"calibration": evaluation.alone.calibration, "summary": _of_alone(evaluation)},
        "labels": {who: _labels(claims) for who, claims in claimed(evaluation).items()} or None,
        "unseen": unseen and _unseen(evaluation, unseen),
        "retrieval": retrieval and asdict(retrieval),
        "searches": [asdict(search) for search in searches],
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
    return _bins(reliability_of(evaluation))


def _bins(found: Reliability) -> dict[str, Any]:
    low, high = band(found)
    return {
        "bins": f"{BINS} of equal width, [k/{BINS}, (k+1)/{BINS}), the last one closed",
        "counts": found.counts,
        "confidence": found.confidence,
        "accuracy": found.accuracy,
        "honest_from": low,
        "honest_to": high,
    }


def _honesty(evaluation: Evaluation) -> dict[str, Any]:
    """What else is known of probabilities; null where there are none."""
    before, risk = evaluation.before, risk_coverage_of(evaluation)
    calibrated = evaluation.predictions.calibration is not None
    return {
        "reliability_per_class": _bins(per_label(evaluation)) if calibrated else None,
        "other_bins": binned(evaluation) if calibrated else None,
        "before_calibration": before
        and {
            "summary": before.summary,
            "reliability": _bins(reliability_before(evaluation, before)),
        },
        "risk_coverage": risk and asdict(risk),
        "budget": evaluation.budget and _budget(evaluation.budget),
    }


def _unseen(evaluation: Evaluation, unseen: Unseen) -> dict[str, Any]:
    """What was measured of seen and unseen names."""
    sides = reliability_of_sides(evaluation, unseen)
    return {
        "names": list(unseen.names),
        **asdict(unseen.found),
        "reliability": {side: _bins(found) for side, found in sides.items()} or None,
    }


def _of_alone(evaluation: Evaluation) -> dict[str, float]:
    return {metric: values[ALONE] for metric, values in ranked(evaluation).items()}


def _labels(claims: Claims) -> dict[str, Any]:
    """How many labels and pairs a picture gets; histograms count pictures with 0, 1, 2 … labels."""
    there = claims.together.present
    return {
        "threshold": claims.threshold,
        "per_picture": claims.counts.means,
        "with_half_or_more": claims.sure,
        "right": claims.right,
        "histograms": claims.counts.histograms,
        "pairs": {
            "shown": pairs_a_picture(claims.together.shown),
            "present": None if there is None else pairs_a_picture(there),
            "distance": claims.together.distance,
        },
    }


def _budget(budget: Budget) -> dict[str, Any]:
    return {**asdict(budget), "enough": budget.enough}


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
