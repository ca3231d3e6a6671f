"""Run the calibration comparison and write its Markdown, JSON and PNG files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel.bench.calibrated.curves import plot_calibrated_curves
from surelabel.bench.calibrated.page import (
    calibration_page,
    calibration_page_json,
    calibration_page_published_section,
)
from surelabel.bench.calibrated.plan import CalibrationPlan
from surelabel.bench.calibrated.run import run_calibrated_measurements
from surelabel.bench.feature_splits import FeatureSplits
from surelabel.bench.result_cache import ResultCache
from surelabel.files import atomic_file
from surelabel.progress import Progress


def write_calibration_comparison(
    datasets: Sequence[FeatureSplits],
    plan: CalibrationPlan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Run the comparison and write ``calibrated.md``, ``calibrated.json`` and ``curves.png``.

    Args:
        datasets: Features and targets of one or more datasets.
        plan: Sizes and settings of the comparison.
        folder: Output folder. An interrupted comparison resumes from the subfolder ``cache``.
        seed: Seed of the first fit and of the candidate settings.
        progress: Function called with the number of finished steps and the total number of steps
            of the current dataset. A step is one fit or one row of the retrieval table.

    Returns:
        Content of the Markdown file as a string, and content of the JSON file as a dictionary.

    Raises:
        DataError: If a file in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cache = ResultCache(folder / "cache")
    results = [
        run_calibrated_measurements(dataset, plan, cache, seed=seed, progress=progress)
        for dataset in datasets
    ]
    page = "\n".join([*map(calibration_page, results), calibration_page_published_section()])
    value = {"results": [calibration_page_json(result) for result in results]}
    for name, content in (
        ("calibrated.md", page.encode()),
        ("calibrated.json", json.dumps(value, indent=1, allow_nan=False).encode()),
        ("curves.png", plot_calibrated_curves(results)),
    ):
        with atomic_file(folder / name) as file:
            file.write_bytes(content)
    return page, value
