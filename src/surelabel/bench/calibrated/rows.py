"""Rows of the metrics table: each readout measured on the test images."""

from typing import Any

from scipy.special import expit

from surelabel.arrays import Array
from surelabel.bench.calibrated.plan import TABLE_METRICS
from surelabel.bench.calibrated.readouts import HeadReadout
from surelabel.bench.calibrated.results import CalibrationRow
from surelabel.bench.feature_splits import FeatureSplits
from surelabel.bench.result_cache import ResultCache, result_cache_array_digest
from surelabel.config import Run
from surelabel.evaluation import NOISE_FLOOR_METRICS
from surelabel.metrics import POOLED, RANKING, noise_floor
from surelabel.records import LabelledFeatures

NOISE_FLOOR_RESAMPLES = 5  # simulated targets for each noise floor


def calibration_row(
    readout: HeadReadout, dataset: FeatureSplits, cache: ResultCache
) -> CalibrationRow:
    """Compute the metrics of all fits of a readout on the test images.

    Args:
        readout: Scores and log-odds of the row.
        dataset: Features and targets.
        cache: Cache of the metrics.
    """
    test = dataset.test

    def compute() -> dict[str, list[float]]:
        metrics_of_fits = [
            calibration_row_metrics(logits, scores, test, TABLE_METRICS)
            | _calibration_row_noise_floors(expit(logits), test)
            for logits, scores in zip(readout.logits, readout.scores, strict=True)
        ]
        return {name: [metrics[name] for metrics in metrics_of_fits] for name in metrics_of_fits[0]}

    digest = result_cache_array_digest(*readout.logits, *readout.scores)
    metrics = cache.load_or_compute(
        "row", dataset.fingerprint, digest, TABLE_METRICS, compute=compute
    )
    return CalibrationRow(
        readout.title, readout.head, _calibration_row_settings(readout.run), metrics
    )


def calibration_row_metrics(
    logits: Array, scores: Array, test: LabelledFeatures, names: tuple[str, ...]
) -> dict[str, float]:
    """Return the metrics of one fit of a head, by name.

    Ranking metrics use the raw scores, because a link may map different scores to equal log-odds.

    Args:
        logits: Test log-odds, ``(n, c)``.
        scores: Raw test scores, ``(n, c)``.
        test: Test split.
        names: Names of the metrics to compute, from the table ``POOLED``.
    """
    p = expit(logits)
    return {
        name: POOLED[name](scores if name in RANKING else p, test.targets, test.known)
        for name in names
    }


def _calibration_row_noise_floors(p: Array, test: LabelledFeatures) -> dict[str, float]:
    return {
        f"{name}_noise_floor": float(
            noise_floor(POOLED[name], p, test.known, resamples=NOISE_FLOOR_RESAMPLES)
        )
        for name in NOISE_FLOOR_METRICS
    }


def _calibration_row_settings(run: Run) -> dict[str, Any]:
    settings = {"learning_rate": run.learning_rate, "weight_decay": run.weight_decay}
    weight = {"regularizer_weight": run.regularizer_weight} if run.regularizer else {}
    return settings | weight
