"""Results as Markdown and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from typing import Any

import numpy as np

from surelabel.bench.calibrated.conclusions import conclusions
from surelabel.bench.calibrated.results import Results
from surelabel.bench.calibrated.tables import (
    chosen_table,
    comparisons_table,
    published_tables,
    retrieval_table,
    rows_table,
    sensitivity_table,
)

ROWS = (
    "Mean ± standard deviation over fits; in brackets what a perfectly calibrated recognizer with "
    "the same probabilities would show by chance. **Bold**: within one point of the best mAP@y. "
    "Rankings go by the raw scores. A head with several readings was tuned for its map, not for "
    "the plain sigmoid."
)
CHOSEN = (
    "Chosen on validation, from as many settings for each head. With LPR: each λ at what was "
    "chosen for the loss alone, and others drawn from the grid:"
)
COMPARISONS = (
    "Differences with 95 % intervals: over fits (paired t) / over test pictures (paired bootstrap, "
    "first fit). Bold ones leave out 0. The fits share most of their training pictures, so the "
    "first interval is of repeated training, not of other training data; and of so many "
    "differences some leave out 0 by chance."
)
SENSITIVITY = (
    "SPA with one setting changed, first fit, the rest as chosen for the paper's setting, which is "
    "zeta_neg 5, k_neg 3, b_neg 1; at the end with label pairs of each weight beside it:"
)
RETRIEVAL = (
    "Retrieval, first fit: mean average precision of all queries for labels that must and must not "
    "be there, by their number of labels, up to {exact} all and beyond some of each shape, with "
    "the standard error of drawing them. Other pictures would move all rows together. What the "
    "detached map ties goes by the raw score."
)


def markdown(results: Results) -> str:
    """The whole page of one data set."""
    return "\n\n".join(_parts(results)) + "\n"


def published() -> str:
    """The paper's tables."""
    return published_tables() + "\n"


def as_json(results: Results) -> dict[str, Any]:
    """The same numbers for machines; what is undefined is null."""
    return {key: _plain(value) for key, value in asdict(results).items()}


def _parts(results: Results) -> Iterator[str]:
    train, validation, test = results.pictures
    plan = results.plan
    yield f"## {results.material}"
    yield (
        f"Linear heads on frozen vectors, {results.labels} labels: {train:,} pictures to train, "
        f"{validation:,} to choose and calibrate, {test:,} to test. {plan.budget} settings tried "
        f"for each head, chosen on validation log loss; {plan.seeds} fits, each on another 80 % of "
        "the training pictures. 15 bins of equal width, pooled over labels."
    )
    yield "\n".join(f"- {sentence}" for sentence in conclusions(results))
    yield ROWS
    yield rows_table(results)
    yield COMPARISONS
    yield comparisons_table(results.comparisons)
    yield RETRIEVAL.format(exact=next(iter(results.retrieval.values()))["exact"])
    yield retrieval_table(results)
    yield SENSITIVITY
    yield sensitivity_table(results)
    yield CHOSEN
    yield chosen_table(results)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return value
