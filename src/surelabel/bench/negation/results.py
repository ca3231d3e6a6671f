"""Measure the results of the comparison of queries with an excluded label."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from surelabel.arrays import Array, ColumnIndices, Flags
from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.negation.encoder_outputs import (
    NegationEncoder,
    log_probability_of_pairs,
    measure_negation_encoder,
)
from surelabel.bench.negation.independence import (
    ConjunctionCalibration,
    PairCalibration,
    conjunction_calibrations,
    pair_calibrations,
)
from surelabel.bench.negation.plan import (
    NEGATION_WORDS,
    PACKAGE,
    QUERY,
    ROW_TITLES,
    TUNED,
    UNCALIBRATED,
    WANTED,
    WANTED_COSINE,
    NegationPlan,
)
from surelabel.bench.negation.query_sets import negation_query_pairs
from surelabel.bench.negation.ranking_metrics import (
    NEGATION_METRICS,
    ScoreQueries,
    mean_average_precision_of_queries,
    mean_ranking_metrics,
    resample_counts,
)
from surelabel.bench.negation.scene_splits import NegationSplits
from surelabel.bench.negation.tuning import (
    SelectedSetting,
    restore_selected_setting,
    select_embedding_settings,
    selected_setting_state,
)
from surelabel.bench.resampling import (
    bench_resampling_difference_intervals,
    bench_resampling_weights,
)
from surelabel.metrics import ConfidenceInterval
from surelabel.metrics.resampling.bootstrap import shifted_bootstrap_interval

NegationTask = ComparisonTask[NegationSplits, NegationPlan]


@dataclass(frozen=True)
class NegationRow:
    """One row of the table of ranking metrics.

    Attributes:
        encoder: Name of the encoder.
        key: Key of the row in ``ROW_TITLES``.
        metrics: Mean of each metric over queries, with its interval over test images.
        differences: Metric minus the metric of the calibrated query, with its paired interval over
            test images. For the calibrated query, the dictionary is empty.
        undefined: Mean number of queries per resample that have no relevant image.
    """

    encoder: str
    key: str
    metrics: dict[str, ConfidenceInterval]
    differences: dict[str, ConfidenceInterval]
    undefined: float


@dataclass(frozen=True)
class EncoderResults:
    """Measurements of one encoder.

    Attributes:
        name: Name of the encoder.
        calibrated_on: Description of the calibration on validation images.
        untrained_words: Words of exclusion that do not occur in the training texts of the encoder.
        validation_ap: Mean AP of the rows without selected settings on validation queries, by row.
        selected: Selected settings, by row.
        rows: Rows of the table of ranking metrics.
        conjunctions: Calibration of sampled conjunctions.
        pairs: Errors of P(a) P(b) for pairs of labels.
    """

    name: str
    calibrated_on: str
    untrained_words: tuple[str, ...]
    validation_ap: dict[str, float]
    selected: dict[str, SelectedSetting]
    rows: tuple[NegationRow, ...]
    conjunctions: tuple[ConjunctionCalibration, ...]
    pairs: tuple[PairCalibration, ...]


@dataclass(frozen=True)
class NegationResults:
    """All measurements of the comparison of queries with an excluded label.

    Attributes:
        dataset: Title of the dataset.
        plan: Sizes and settings of the comparison.
        seed: Seed of the resampling and of the sampled conjunctions.
        n_images: Number of validation and of test images.
        n_labels: Number of labels.
        n_queries: Number of validation and of test queries.
        relevant: Minimum, median and maximum number of relevant test images of a query.
        n_small: Number of test queries with fewer than 10 relevant images.
        excluded_share: Mean share of the test images with label a that also have label b.
        encoders: Measurements of each encoder.
    """

    dataset: str
    plan: NegationPlan
    seed: int
    n_images: tuple[int, int]
    n_labels: int
    n_queries: tuple[int, int]
    relevant: tuple[int, int, int]
    n_small: int
    excluded_share: float
    encoders: tuple[EncoderResults, ...]


def measure_negation_results(task: NegationTask) -> NegationResults:
    """Measure all rows with all encoders.

    Args:
        task: Images, plan, cache and seed. A step of the progress is a row, a selection of
            settings, or all independence errors.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    splits, plan = task.dataset, task.plan
    validation, test = (images.targets > 0 for images in (splits.validation, splits.test))
    pairs = {
        name: negation_query_pairs(y, min_relevant=plan.min_relevant, min_both=plan.min_both)
        for name, y in (("validation", validation), ("test", test))
    }
    count_step = task.step_counter((len(ROW_TITLES) + len(TUNED) + 1) * len(splits.encoders))
    a, b = pairs["test"].T
    n_relevant = (test[:, a] & ~test[:, b]).sum(axis=0)
    n_wanted = test[:, a].sum(axis=0)
    return NegationResults(
        dataset=splits.name,
        plan=plan,
        seed=task.seed,
        n_images=(len(splits.validation), len(splits.test)),
        n_labels=test.shape[1],
        n_queries=(len(pairs["validation"]), len(pairs["test"])),
        relevant=(int(n_relevant.min()), int(np.median(n_relevant)), int(n_relevant.max())),
        n_small=int((n_relevant < 10).sum()),
        excluded_share=float((1 - n_relevant / n_wanted).mean()),
        encoders=tuple(
            _measure_encoder(task, name, pairs, validation, test, count_step)
            for name in splits.encoders
        ),
    )


def _measure_encoder(
    task: NegationTask,
    name: str,
    pairs: Mapping[str, ColumnIndices],
    validation: Flags,
    test: Flags,
    count_step: Callable[[], None],
) -> EncoderResults:
    """Return the measurements of one encoder."""
    plan, cache = task.plan, task.cache
    encoder = measure_negation_encoder(task.dataset, name, cache)
    key = (task.dataset.fingerprint, encoder.encoder.fingerprint, plan)
    states = cache.load_or_compute(
        *("selected", *key),
        compute=lambda: {
            row: selected_setting_state(setting)
            for row, setting in select_embedding_settings(
                encoder, pairs["validation"], validation, plan
            ).items()
        },
    )
    selected = {row: restore_selected_setting(state) for row, state in states.items()}
    for _ in TUNED:
        count_step()
    weights = bench_resampling_weights(len(test), resamples=plan.resamples, seed=task.seed)
    counts = resample_counts(weights)
    values = dict[str, dict[str, Array]]()
    for row, score in _row_scores(encoder, selected, "test").items():
        values[row] = cache.load_or_compute_arrays(
            *("row", *key, task.seed, row),
            shapes=dict.fromkeys((*NEGATION_METRICS, "undefined"), (len(weights),)),
            compute=partial(mean_ranking_metrics, score, pairs["test"], test, counts),
        )
        count_step()
    independence = cache.load_or_compute(
        *("independence", *key, task.seed),
        compute=partial(_measure_independence, encoder, validation, test, weights, task),
    )
    count_step()
    validation_scores = _row_scores(encoder, selected, "validation")
    return EncoderResults(
        name=name,
        calibrated_on=encoder.calibrated_on,
        untrained_words=tuple(encoder.encoder.labels_with_untrained_tokens(list(NEGATION_WORDS))),
        validation_ap={
            row: mean_average_precision_of_queries(
                validation_scores[row], pairs["validation"], validation
            )
            for row in (PACKAGE, UNCALIBRATED, WANTED_COSINE)
        },
        selected=selected,
        rows=tuple(_negation_row(name, row, values) for row in values),
        conjunctions=tuple(
            ConjunctionCalibration(**_with_intervals(row, "difference", "ratio"))
            for row in independence["conjunctions"]
        ),
        pairs=tuple(
            PairCalibration(**_with_intervals(row, "signed_error")) for row in independence["pairs"]
        ),
    )


def _row_scores(
    encoder: NegationEncoder, selected: Mapping[str, SelectedSetting], split: str
) -> dict[str, ScoreQueries]:
    """Return the function that scores the images of a split, by row."""
    outputs = {"validation": encoder.validation, "test": encoder.test}[split]
    texts = encoder.label_vectors
    return {
        QUERY: partial(log_probability_of_pairs, outputs.calibrated),
        PACKAGE: partial(log_probability_of_pairs, outputs.package),
        UNCALIBRATED: partial(log_probability_of_pairs, outputs.uncalibrated),
        WANTED: lambda pairs: outputs.calibrated[:, pairs[:, 0]],
        WANTED_COSINE: lambda pairs: outputs.vectors @ texts[pairs[:, 0]].T,
        **{row: partial(selected[row].setting.scores, encoder, outputs) for row in TUNED},
    }


def _measure_independence(
    encoder: NegationEncoder, validation: Flags, test: Flags, weights: Array, task: NegationTask
) -> dict[str, Any]:
    """Return the rows of both tables of independence errors as a JSON object."""
    arguments = (encoder.test.calibrated, test, validation, weights, task.plan)
    return {
        "conjunctions": [
            asdict(row) for row in conjunction_calibrations(*arguments, seed=task.seed)
        ],
        "pairs": [asdict(row) for row in pair_calibrations(*arguments, seed=task.seed)],
    }


def _with_intervals(state: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields of a row, with its confidence intervals restored from JSON objects."""
    return {**state, **{name: ConfidenceInterval(**state[name]) for name in names}}


def _negation_row(encoder: str, row: str, values: Mapping[str, Mapping[str, Array]]) -> NegationRow:
    """Return a row, with intervals of its metrics and of its differences from the row ``QUERY``."""
    metrics = {name: values[row][name] for name in NEGATION_METRICS}
    reference = {name: values[QUERY][name] for name in NEGATION_METRICS}
    return NegationRow(
        encoder=encoder,
        key=row,
        metrics={
            name: shifted_bootstrap_interval(float(array[0]), array[1:], within=(0.0, 1.0))
            for name, array in metrics.items()
        },
        differences=(
            {} if row == QUERY else bench_resampling_difference_intervals(metrics, reference)
        ),
        undefined=float(values[row]["undefined"][1:].mean()),
    )
