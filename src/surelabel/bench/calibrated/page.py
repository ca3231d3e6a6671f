"""Markdown and JSON of the calibration comparison."""

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from typing import Any

import numpy as np

from surelabel.bench.calibrated.conclusions import calibration_conclusions
from surelabel.bench.calibrated.results import CalibrationResults
from surelabel.bench.calibrated.tables import (
    calibrated_comparisons_table,
    calibrated_metrics_table,
    calibrated_retrieval_table,
    calibrated_sensitivity_table,
    calibrated_settings_table,
    calibrated_tables_as_published,
)

ROWS = (
    "Each value is the mean ± standard deviation over fits. The noise floor in brackets is the "
    "expected value for a perfectly calibrated model with the same probabilities. **Bold**: the "
    "mAP@y is within one point of the highest mAP@y. Ranking metrics use the raw scores. A map is "
    "the link of a loss. The settings of a head with a map were selected with the map, not with "
    "the plain sigmoid."
)
SELECTED_SETTINGS = (
    "The settings of each head are those with the lowest validation log loss among the candidates. "
    "All heads have the same number of candidates. With label-pair regularization (LPR), the first "
    "candidates combine each weight λ with the settings selected without LPR; the others are "
    "sampled from the grid."
)
COMPARISONS = (
    "Differences between rows with 95 % intervals. Before the slash: mean over fits, with a paired "
    "t interval. After the slash: first fit, with a paired bootstrap interval over test images. "
    "**Bold**: the interval excludes 0. The fits share most of their training images, so the first "
    "interval shows the variation between repeated fits, not between independent training sets. "
    "With this many differences, some intervals exclude 0 by chance."
)
SENSITIVITY = (
    "Metrics of the first fit of SPA with one setting changed. The other settings of the loss are "
    "those of the SPA paper (zeta_neg 5, k_neg 3, b_neg 1). Learning rate and weight decay were "
    "selected for the settings of the paper. The last rows add label-pair regularization, one row "
    "for each weight."
)
RETRIEVAL = (
    "Retrieval with the first fit: mean average precision (mAP) of queries with wanted and "
    "unwanted labels, by number of labels. All queries of up to {exact} labels are evaluated. "
    "Longer queries are sampled for each combination of the numbers of wanted and unwanted labels; "
    "± is the standard error of the sample. The standard error does not include the variation "
    "between test sets, which affects all rows alike. Images with equal log-odds at the lower "
    "limit are sorted by the raw score."
)


def calibration_page(results: CalibrationResults) -> str:
    """Return the Markdown section of one dataset."""
    return "\n\n".join(_calibration_page_paragraphs(results)) + "\n"


def calibration_page_published_section() -> str:
    """Return the Markdown section with the published tables of the SPA paper."""
    return calibrated_tables_as_published() + "\n"


def calibration_page_json(results: CalibrationResults) -> dict[str, Any]:
    """Return the results as a JSON value, with null for undefined numbers."""
    return {key: _calibration_page_json_value(value) for key, value in asdict(results).items()}


def _calibration_page_paragraphs(results: CalibrationResults) -> Iterator[str]:
    train, validation, test = results.images
    plan = results.plan
    yield f"## {results.dataset}"
    yield (
        f"Linear heads on frozen features with {results.labels} labels are fitted on {train:,} "
        f"training images. {validation:,} validation images are used to select settings and to "
        f"calibrate, {test:,} test images to evaluate. Each head has {plan.settings_per_head} "
        "candidate settings, of which one is selected by validation log loss. Each head is fitted "
        f"{plan.seeds} times, each time on another 80 % of the training images. Calibration errors "
        "use 15 bins of equal width, pooled over labels."
    )
    yield "\n".join(f"- {sentence}" for sentence in calibration_conclusions(results))
    yield ROWS
    yield calibrated_metrics_table(results)
    yield COMPARISONS
    yield calibrated_comparisons_table(results.comparisons)
    yield RETRIEVAL.format(exact=next(iter(results.retrieval.values()))["max_exact_length"])
    yield calibrated_retrieval_table(results)
    yield SENSITIVITY
    yield calibrated_sensitivity_table(results)
    yield SELECTED_SETTINGS
    yield calibrated_settings_table(results)


def _calibration_page_json_value(value: Any) -> Any:
    """Return a JSON value: lists for arrays and tuples, null for non-finite numbers."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _calibration_page_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_calibration_page_json_value(item) for item in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return value
