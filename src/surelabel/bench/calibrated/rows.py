"""Measure the rows of the metrics table on the test images, and the differences of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import expit

from surelabel.arrays import Array
from surelabel.bench.calibrated.plan import COMPARED_ROWS, TABLE_METRICS
from surelabel.bench.calibrated.readouts import HeadReadout
from surelabel.bench.feature_splits import FeatureSplits
from surelabel.bench.resampling import BenchResampling, bench_resampling_difference_intervals
from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.bench.rows import ComparisonRow, difference_over_seeds, metrics_by_seed
from surelabel.config import Run
from surelabel.evaluation import NOISE_FLOOR_METRICS
from surelabel.metrics import POOLED, RANKING, ConfidenceInterval, noise_floor
from surelabel.records import LabelledFeatures

NOISE_FLOOR_RESAMPLES = 5  # simulated targets for each noise floor


@dataclass(frozen=True)
class CalibrationRow(ComparisonRow):
    """One row of the metrics table, whose title states the loss, the readout and the calibrator.

    Attributes:
        head: Key of the fitted head in ``HEADS``.
        settings: Settings selected on the validation split, by name.
    """

    head: str
    settings: dict[str, float]


@dataclass(frozen=True)
class RowComparison:
    """Difference of two rows: the metrics of the first row minus the metrics of the second row.

    Attributes:
        first: Title of the first row.
        second: Title of the second row.
        over_seeds: Mean difference with its 95 % interval over fits, by metric. All fits are
            evaluated on the same test images.
        over_images: Difference of the first fits with its 95 % interval over test images, by
            metric.
    """

    first: str
    second: str
    over_seeds: dict[str, ConfidenceInterval]
    over_images: dict[str, ConfidenceInterval]


def calibration_row(
    readout: HeadReadout, dataset: FeatureSplits, cache: ResultCache
) -> CalibrationRow:
    """Return the row of a readout, with the metrics of all its fits on the test images.

    Args:
        readout: Scores and log-odds of the row.
        dataset: Features and targets.
        cache: Cache of the metrics.
    """
    test = dataset.test

    def compute() -> dict[str, list[float]]:
        return metrics_by_seed(
            [
                calibration_row_metrics(logits, scores, test, TABLE_METRICS)
                | _calibration_row_noise_floors(expit(logits), test)
                for logits, scores in zip(readout.logits, readout.scores, strict=True)
            ]
        )

    digest = result_cache_digest(*readout.logits, *readout.scores)
    metrics = cache.load_or_compute(
        "row", dataset.fingerprint, digest, TABLE_METRICS, compute=compute
    )
    return CalibrationRow(
        readout.title, metrics, readout.head, _calibration_row_settings(readout.run)
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


def calibration_row_comparisons(
    rows: Mapping[str, CalibrationRow], logits: Mapping[str, Array], test: LabelledFeatures
) -> tuple[RowComparison, ...]:
    """Compute the differences in metrics for all pairs of rows in ``COMPARED_ROWS``.

    Args:
        rows: Rows of the metrics table, by title.
        logits: Test log-odds of the first fit of each row, ``(n, c)``, by title.
        test: Test split on which the rows were measured.
    """
    bootstrap = BenchResampling(test.targets, test.known)
    titles = {title for pair in COMPARED_ROWS for title in pair}
    resampled = {title: bootstrap.metrics(logits[title]) for title in titles}
    return tuple(
        RowComparison(
            first,
            second,
            {
                metric: difference_over_seeds(
                    rows[first].metrics[metric], rows[second].metrics[metric]
                )
                for metric in TABLE_METRICS
            },
            bench_resampling_difference_intervals(resampled[first], resampled[second]),
        )
        for first, second in COMPARED_ROWS
    )


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
