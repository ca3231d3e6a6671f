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
    "Mean ± standard deviation over fits; in brackets the noise floor, which is the value of a "
    "perfectly calibrated recognizer with the same probabilities. **Bold**: within one point of "
    "the best mAP@y. Ranking metrics use the raw scores. A head with several readouts was tuned "
    "for its map, not for the plain sigmoid."
)
SELECTED_SETTINGS = (
    "Settings selected on validation log loss, from the same number of candidates for each head. "
    "Candidates with LPR: each λ with the settings selected for the loss without LPR, and others "
    "sampled from the grid."
)
COMPARISONS = (
    "Differences with 95 % intervals over fits (paired t) / over test images (paired bootstrap, "
    "first fit). **Bold**: the interval excludes 0. The fits share most of their training images, "
    "so the first interval is about repeated training, not about other training data. Among so "
    "many differences, some intervals exclude 0 by chance."
)
SENSITIVITY = (
    "SPA with one setting changed, first fit. The other settings are those selected for the "
    "paper's setting (zeta_neg 5, k_neg 3, b_neg 1). The last rows add label-pair regularization "
    "with each weight."
)
RETRIEVAL = (
    "Retrieval, first fit: mean average precision of all queries for wanted and unwanted labels, "
    "by number of labels. Queries of up to {exact} labels are all evaluated; longer ones are "
    "sampled for each shape, with the standard error of the sample. Other images would change all "
    "rows together. Ties of the detached map are broken by the raw score."
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
        f"Linear heads on frozen features, {results.labels} labels: {train:,} training images, "
        f"{validation:,} validation images to select settings and calibrate, {test:,} test images. "
        f"{plan.settings_per_head} candidate settings for each head, selected on validation log "
        f"loss; {plan.seeds} fits, each on another 80 % of the training images. 15 bins of equal "
        "width, pooled over labels."
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
    """Return a JSON value without arrays, tuples and non-finite numbers."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _calibration_page_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_calibration_page_json_value(item) for item in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return value
