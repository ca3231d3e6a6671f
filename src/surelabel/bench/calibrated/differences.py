"""Differences between table rows, with 95 % intervals over fits and over test images."""

from collections.abc import Mapping

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.calibrated.plan import COMPARED_ROWS, TABLE_METRICS
from surelabel.bench.calibrated.results import CalibrationRow, RowComparison
from surelabel.bench.resampling import BenchResampling, bench_resampling_difference_intervals
from surelabel.metrics import ConfidenceInterval, paired_t_interval
from surelabel.records import LabelledFeatures


def calibrated_row_differences(
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
            _calibrated_row_differences_over_seeds(rows[first], rows[second]),
            bench_resampling_difference_intervals(resampled[first], resampled[second]),
        )
        for first, second in COMPARED_ROWS
    )


def _calibrated_row_differences_over_seeds(
    first: CalibrationRow, second: CalibrationRow
) -> dict[str, ConfidenceInterval]:
    return {
        metric: paired_t_interval(np.subtract(first.metrics[metric], second.metrics[metric]))
        for metric in TABLE_METRICS
    }
