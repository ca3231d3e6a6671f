"""Print metrics of several seeds as tables, with means and their 95 % t intervals."""

from collections.abc import Mapping, Sequence

import numpy as np

from surelabel.metrics import paired_t_interval


def print_table(title: str, rows: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
    """Print the mean over the seeds of each metric, with its interval.

    Args:
        title: Title of the first column.
        rows: Metrics of each seed, for each row.
    """
    metrics = list(next(iter(rows.values()))[0])
    print(f"\n| {title} | {' | '.join(metrics)} |\n|---|{'---|' * len(metrics)}")
    for row, seeds in rows.items():
        cells = [interval([seed[metric] for seed in seeds], metric) for metric in metrics]
        print(f"| {row} | {' | '.join(cells)} |")


def interval(values: Sequence[float], metric: str) -> str:
    """Return the mean over the seeds and its 95 % t interval, or ``undefined`` if one is NaN."""
    if not np.isfinite(values).all():
        return "undefined"
    result = paired_t_interval(values)
    digits = 5 if metric == "log loss" else 2
    return f"{result.value:.{digits}f} ({result.low:.{digits}f} to {result.high:.{digits}f})"
