"""Run the calibration comparison and write its Markdown, JSON and PNG files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel.bench.calibrated.curves import plot_comparison
from surelabel.bench.calibrated.page import calibration_json, calibration_page, published_section
from surelabel.bench.calibrated.plan import CalibrationPlan, Progress
from surelabel.bench.calibrated.run import measure_calibration
from surelabel.bench.feature_splits import FeatureSplits
from surelabel.bench.result_cache import ResultCache
from surelabel.files import atomic_file


def write_calibration_comparison(
    datasets: Sequence[FeatureSplits],
    plan: CalibrationPlan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Measure every dataset and write ``calibrated.md``, ``calibrated.json`` and ``curves.png``.

    Args:
        datasets: Features and targets of each dataset, at least one.
        plan: Amount of work.
        folder: Output folder; its subfolder ``cache`` lets an interrupted comparison resume.
        seed: Seed of all random choices.
        progress: Called with the number of finished steps of a dataset and their total.

    Returns:
        Content of the Markdown file and of the JSON file.

    Raises:
        DataError: If a file in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cache = ResultCache(folder / "cache")
    results = [
        measure_calibration(dataset, plan, cache, seed=seed, progress=progress)
        for dataset in datasets
    ]
    page = "\n".join([*map(calibration_page, results), published_section()])
    value = {"results": [calibration_json(result) for result in results]}
    for name, content in (
        ("calibrated.md", page.encode()),
        ("calibrated.json", json.dumps(value, indent=1, allow_nan=False).encode()),
        ("curves.png", plot_comparison(results)),
    ):
        with atomic_file(folder / name) as file:
            file.write_bytes(content)
    return page, value
