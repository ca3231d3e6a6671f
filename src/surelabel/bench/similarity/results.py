"""Measure the results of the comparison of similarity methods."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.bench.base_new_metrics import cached_base_new_metrics
from surelabel.bench.base_new_predictions import BaseNewFit, predict_base_and_new
from surelabel.bench.base_new_splits import HALVES
from surelabel.bench.comparison import ComparisonTask
from surelabel.bench.resampling import (
    bench_resampling_difference_intervals,
    bench_resampling_weights,
)
from surelabel.bench.result_cache import ResultCache
from surelabel.bench.rows import ComparisonRow, RowDifference, metrics_by_seed, row_differences
from surelabel.bench.similarity.caption_splits import CaptionSplits
from surelabel.bench.similarity.plan import (
    ABLATIONS,
    CONTRASTIVE,
    DETACHED,
    LOSS_ROWS,
    MAX_EPOCHS,
    SIGMOID,
    TIMED_STEPS,
    VACSR,
    ZERO_SHOT,
    ZERO_SHOT_ROW,
    SimilarityPlan,
    SimilaritySetting,
)
from surelabel.config import Choice, Run
from surelabel.evaluation.false_negative_detection import false_negative_auroc
from surelabel.evaluation.pair_direction import PairDirection
from surelabel.evaluation.pair_evaluation import (
    CAPTION_TO_IMAGE,
    IMAGE_TO_CAPTION,
    evaluate_pair_directions,
)
from surelabel.methods import Method
from surelabel.recognizer.fitting import make_method_for_fitting
from surelabel.recognizer.pair_fitting import PairFittingData, fit_recognizer_method_on_pairs
from surelabel.recognizer.pair_scoring import score_pair_data
from surelabel.records import Pairs
from surelabel.retrieval.caption_retrieval.relevant_items import relevant_captions_of_images

SimilarityTask = ComparisonTask[CaptionSplits, SimilarityPlan]
DIRECTIONS = (IMAGE_TO_CAPTION, CAPTION_TO_IMAGE)
COMPARED_METRICS = ("relevant_map_at_r", "relevant_r_precision", "recall_at_1")
SELECTION_METRIC = "relevant_map_at_r"
MAIN, NOISE, ABLATION, LOSSES, SENSITIVITY = "main", "noise", "ablation", "losses", "sensitivity"
HISTOGRAM_BINS = 60
PAIR_KINDS = ("own", "false_negative", "true_negative")


@dataclass(frozen=True)
class SimilarityRow(ComparisonRow):
    """One row of the tables of the comparison of similarity methods.

    A metric is the mean of both retrieval directions, unless its key starts with a direction.

    Attributes:
        setting: Settings of the row.
        learning_rate: Learning rate of the fits, or 0 for a row without a fit.
        differences: Difference from the rows of the sigmoid and of the contrastive loss with the
            same noise, by title of the compared row and by metric. For these two rows and for
            zero-shot, the dictionary is empty.
        curves: Lists of numbers of the first seed, such as R@1 in bins of the uncertainty.
    """

    setting: SimilaritySetting
    learning_rate: float
    differences: dict[str, dict[str, RowDifference]]
    curves: dict[str, list[float]]


@dataclass(frozen=True)
class TaggerRow(ComparisonRow):
    """Row of the table of base and new labels, with the metrics of the comparison ``prompts``."""

    method: str


@dataclass(frozen=True)
class SimilarityResults:
    """All measurements of the comparison of similarity methods on one dataset.

    Attributes:
        dataset: Title of the dataset.
        plan: Sizes and settings of the comparison, with the number of epochs.
        n_captions: Numbers of captions of the training images and of the test images.
        n_relevant: Number of relevant pairs of the test images that are not own captions.
        tables: Rows of each table, by name of the table.
        taggers: Rows of the table of base and new labels.
    """

    dataset: str
    plan: SimilarityPlan
    n_captions: tuple[int, int]
    n_relevant: int
    tables: dict[str, tuple[SimilarityRow, ...]]
    taggers: tuple[TaggerRow, ...]


@dataclass(frozen=True)
class _FitValues:
    """Values of one fit: metrics, sums of the compared metrics per image, and curves."""

    metrics: dict[str, float]
    image_sums: dict[str, Array]
    curves: dict[str, list[float]]


@dataclass(frozen=True)
class _RowValues:
    """Values of the fits of a row: metrics by seed, and their means on resamples of the images."""

    metrics: dict[str, list[float]]
    resampled: dict[str, Array]
    curves: dict[str, list[float]]
    learning_rate: float


def similarity_plan_with_epochs(
    datasets: Sequence[CaptionSplits], plan: SimilarityPlan, cache: ResultCache
) -> SimilarityPlan:
    """Return the plan with the number of epochs that its time limit allows.

    One optimizer step of each method is timed. The number of epochs is at least 1 and at most 10,
    and is equal for all rows.

    Args:
        datasets: All datasets of the comparison.
        plan: Sizes and settings of the comparison.
        cache: Cache of the times, so that a resumed comparison has the same epochs.
    """
    epoch_seconds = 0.0
    for dataset in datasets:
        step_seconds = {
            setting.method: cache.load_or_compute(
                *("step", dataset.fingerprint, setting.method, plan.batch_size),
                compute=partial(_time_step, dataset, plan, setting),
            )
            for setting in plan.main_settings()
        }
        steps = -(-len(dataset.train) // plan.batch_size)
        epoch_seconds += steps * plan.fit_seconds(step_seconds)
    epochs = int(60 * plan.minutes / epoch_seconds)
    return replace(plan, epochs=min(max(epochs, 1), MAX_EPOCHS))


def measure_similarity_results(task: SimilarityTask) -> SimilarityResults:
    """Measure all rows on one dataset.

    Args:
        task: Images with captions, plan, cache and seed. A step of the progress is one fit.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    plan, dataset = task.plan, task.dataset
    n_fits = sum(plan.n_seeds(setting) for setting in plan.fitted_settings())
    count_step = task.step_counter(n_fits)
    memory = dict[SimilaritySetting, _RowValues]()

    def values(setting: SimilaritySetting) -> _RowValues:
        key = replace(setting, title="")
        if key not in memory:
            report = (lambda: None) if setting.method == ZERO_SHOT else count_step
            memory[key] = _measure_seeds(task, setting, report)
        return memory[key]

    def row(setting: SimilaritySetting) -> SimilarityRow:
        measured = values(setting)
        references = [replace(loss, noise=setting.noise) for loss in (SIGMOID, CONTRASTIVE)]
        return SimilarityRow(
            title=setting.title,
            metrics=measured.metrics,
            setting=setting,
            learning_rate=measured.learning_rate,
            differences={
                reference.title: _differences(measured, values(reference))
                for reference in references
                if setting not in (*references, ZERO_SHOT_ROW)
            },
            curves=measured.curves,
        )

    tables = {
        MAIN: [ZERO_SHOT_ROW, *plan.main_settings()],
        NOISE: list(plan.noise_settings()),
        ABLATION: [VACSR, *ABLATIONS, DETACHED, SIGMOID],
        LOSSES: [VACSR, SIGMOID, CONTRASTIVE, *LOSS_ROWS],
        SENSITIVITY: [VACSR, *plan.sensitivity_settings()],
    }
    relevance = dataset.test.relevance
    assert relevance is not None  # scenes have graded relevance
    return SimilarityResults(
        dataset=dataset.name,
        plan=plan,
        n_captions=(len(dataset.train), len(dataset.test)),
        n_relevant=int((relevance.grades == 1).sum()) - len(dataset.test),
        tables={name: tuple(map(row, settings)) for name, settings in tables.items()},
        taggers=tuple(_tagger_row(task, method) for method in plan.taggers),
    )


def _measure_seeds(
    task: SimilarityTask, setting: SimilaritySetting, report: Callable[[], None]
) -> _RowValues:
    """Fit all seeds of a row, and return their metrics; ``report`` is called after each fit."""
    learning_rate = _selected_learning_rate(task, setting)
    of_seeds = []
    for seed in task.seeds(task.plan.n_seeds(setting)):
        of_seeds.append(_cached_fit_values(task, setting, seed, learning_rate))
        report()
    weights = bench_resampling_weights(len(task.dataset.test.paths), resamples=task.plan.resamples)
    resampled = [_resampled_metrics(values.image_sums, weights) for values in of_seeds]
    return _RowValues(
        metrics_by_seed([values.metrics for values in of_seeds]),
        {name: np.mean([r[name] for r in resampled], axis=0) for name in COMPARED_METRICS},
        of_seeds[0].curves,
        learning_rate,
    )


def _selected_learning_rate(task: SimilarityTask, setting: SimilaritySetting) -> float:
    """Return the learning rate with the highest mAP@R on validation images; 0 for zero-shot.

    All rows of one method and loss have the learning rate of the row with default settings. The
    detached rows have their own learning rate.
    """
    if setting.method == ZERO_SHOT:
        return 0.0
    rates = task.plan.learning_rates
    if len(rates) == 1:
        return rates[0]
    settings = setting.settings if setting.settings == DETACHED.settings else ()
    default = replace(setting, title="", settings=settings, regularizer="", noise=0.0)
    scores = [
        task.cache.load_or_compute(
            *("validation", _fit_key(task, default, task.seed, rate)),
            compute=partial(_validation_map_at_r, task, default, rate),
        )
        for rate in rates
    ]
    return rates[int(np.argmax(scores))]


def _validation_map_at_r(
    task: SimilarityTask, setting: SimilaritySetting, learning_rate: float
) -> float:
    method, _ = _fit(task, setting, task.seed, learning_rate)
    dataset = task.dataset
    directions = _evaluate(dataset, method, dataset.validation, dataset.validation_data)[0]
    return _mean_metric(directions, SELECTION_METRIC)


def _fit_key(
    task: SimilarityTask, setting: SimilaritySetting, seed: int, learning_rate: float
) -> tuple[object, ...]:
    run = task.plan.run_of(setting, task.dataset.labelled.encoder_name, seed, learning_rate)
    return task.dataset.fingerprint, repr(run), setting.noise


def _cached_fit_values(
    task: SimilarityTask, setting: SimilaritySetting, seed: int, learning_rate: float
) -> _FitValues:
    """Fit one row with one seed, evaluate it on the test images, and cache the values."""
    key = _fit_key(task, setting, seed, learning_rate)
    computed: list[_FitValues] = []

    def values() -> _FitValues:
        if not computed:
            computed.append(_measure_fit(task, setting, seed, learning_rate))
        return computed[0]

    n_images = len(task.dataset.test.paths)
    image_sums = task.cache.load_or_compute_arrays(
        *("image sums", key),
        shapes=dict.fromkeys(_image_sum_names(), (n_images,)),
        compute=lambda: values().image_sums,
    )
    metrics, curves = task.cache.load_or_compute(
        *("metrics", key), compute=lambda: [values().metrics, values().curves]
    )
    return _FitValues(metrics, image_sums, curves)


def _fit(
    task: SimilarityTask, setting: SimilaritySetting, seed: int, learning_rate: float
) -> tuple[Method, dict[str, float]]:
    """Return a fitted method, and the number of parameters, processor seconds and a warning flag.

    The flag ``noise_inflation`` is 1 if the fit warned about noise inflation.
    """
    dataset = task.dataset
    run = task.plan.run_of(setting, dataset.labelled.encoder_name, seed, learning_rate)
    if setting.method == ZERO_SHOT:
        method = make_method_for_fitting(run, dataset.encoder, dataset.labelled.test.names)
        return method, {"parameters": 0, "fit_seconds": 0.0, "noise_inflation": 0.0}
    data = dataset.noisy_train_data(setting.noise, seed)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        method = fit_recognizer_method_on_pairs(run, dataset.encoder, [], data)
    return method, {
        "parameters": sum(p.numel() for p in method.parameters() if p.requires_grad),
        "fit_seconds": time.process_time() - start,
        "noise_inflation": float(any("Noise inflation" in str(w.message) for w in caught)),
    }


def _measure_fit(
    task: SimilarityTask, setting: SimilaritySetting, seed: int, learning_rate: float
) -> _FitValues:
    method, cost = _fit(task, setting, seed, learning_rate)
    dataset = task.dataset
    start = time.process_time()
    directions, scores, variances = _evaluate(dataset, method, dataset.test, dataset.test_data)
    seconds = time.process_time() - start
    test = dataset.test
    relevant = relevant_captions_of_images(test.image_rows, len(test.paths), test.relevance)
    metrics = _direction_metrics(directions) | cost | {"evaluation_seconds": seconds}
    aurocs = false_negative_auroc(
        scores, relevant, variances=variances, threshold=1.0, seed=task.seed
    )
    metrics |= {f"false_negative_auroc_{name}": value for name, value in aurocs.items()}
    in_main_table = setting in (ZERO_SHOT_ROW, *task.plan.main_settings())
    for domain, pairs in dataset.domains.items() if in_main_table else ():
        of_domain = _evaluate(dataset, method, pairs, dataset.domain_data[domain])[0]
        metrics |= {f"{domain}_{name}": _mean_metric(of_domain, name) for name in COMPARED_METRICS}
    curves = _uncertainty_curves(directions) | _score_histograms(scores, dataset.test)
    return _FitValues(metrics, _image_sums(directions, len(dataset.test.paths)), curves)


def _evaluate(
    dataset: CaptionSplits, method: Method, pairs: Pairs, data: PairFittingData
) -> tuple[dict[str, PairDirection], npt.NDArray[np.float32], npt.NDArray[np.float32] | None]:
    """Return the metrics of both directions, the scores and the variances of all pairs."""
    scores, variances = score_pair_data(method, data)
    directions = evaluate_pair_directions(scores, pairs, variances, pairs.relevance)
    return directions, scores, variances


def _mean_metric(directions: Mapping[str, PairDirection], metric: str) -> float:
    """Return the mean of a metric over both directions."""
    return float(np.mean([direction.metrics[metric] for direction in directions.values()]))


def _direction_metrics(directions: Mapping[str, PairDirection]) -> dict[str, float]:
    """Return all scalar metrics of each direction, RSUM, and means over both directions.

    Only metrics with a value for each query have a mean over both directions.
    """
    names = next(iter(directions.values())).values
    metrics = {name: _mean_metric(directions, name) for name in names}
    metrics["rsum"] = 100 * sum(sum(d.recalls.values()) for d in directions.values())
    for title, direction in directions.items():
        metrics |= {f"{title}_{name}": value for name, value in direction.metrics.items()}
        if direction.false_negatives is not None:
            metrics[f"{title}_missed_false_negatives"] = direction.false_negatives.rate
        for quantity, prediction in direction.error_predictions.items():
            prefix = f"{title}_{quantity}"
            metrics[f"{prefix}_auroc"] = prediction.auroc
            metrics[f"{prefix}_area"] = prediction.risk_coverage.area
            metrics[f"{prefix}_spearman"] = prediction.spearman
            if prediction.bins is not None:
                metrics[f"{prefix}_bin_pearson"] = prediction.bins.pearson_with_index
        for quantity, results in direction.ranking_uncertainty.items():
            for result in results:
                metrics[f"{title}_{quantity}_top_{result.k}_bin_pearson"] = result.bin_pearson
    return metrics


def _image_sum_names() -> list[str]:
    return [f"{title}_{name}" for title in DIRECTIONS for name in ("count", *COMPARED_METRICS)]


def _image_sums(directions: Mapping[str, PairDirection], n_images: int) -> dict[str, Array]:
    """Return the sums of the compared metrics over the queries of each image, ``(n,)`` each."""
    sums = {}
    for title, direction in directions.items():
        images = direction.image_of_query
        sums[f"{title}_count"] = np.bincount(images, minlength=n_images).astype(float)
        for name in COMPARED_METRICS:
            sums[f"{title}_{name}"] = np.bincount(
                images, direction.values[name], minlength=n_images
            )
    return sums


def _resampled_metrics(image_sums: Mapping[str, Array], weights: Array) -> dict[str, Array]:
    """Return the mean of both directions of each compared metric, ``(1 + resamples,)``."""
    return {
        name: np.mean(
            [
                weights @ image_sums[f"{title}_{name}"] / (weights @ image_sums[f"{title}_count"])
                for title in DIRECTIONS
            ],
            axis=0,
        )
        for name in COMPARED_METRICS
    }


def _uncertainty_curves(directions: Mapping[str, PairDirection]) -> dict[str, list[float]]:
    """Return the accuracy in ten bins of each quantity that may predict errors."""
    return {
        f"{title}_{quantity}": [float(value) for value in prediction.bins.accuracy]
        for title, direction in directions.items()
        for quantity, prediction in direction.error_predictions.items()
        if prediction.bins is not None
    }


def _score_histograms(scores: npt.NDArray[np.float32], pairs: Pairs) -> dict[str, list[float]]:
    """Return histograms of the scores of own pairs, false negatives and true negatives."""
    assert pairs.relevance is not None
    kinds = np.full(scores.shape, 2, np.int8)
    is_full = pairs.relevance.grades == 1
    kinds[pairs.relevance.image_rows[is_full], pairs.relevance.caption_rows[is_full]] = 1
    kinds[pairs.image_rows, np.arange(len(pairs))] = 0
    low, high = np.quantile(scores, (0.0005, 0.9995)).tolist()
    curves = {"histogram_edges": np.linspace(low, high, HISTOGRAM_BINS + 1).tolist()}
    for number, kind in enumerate(PAIR_KINDS):
        of_kind = scores[kinds == number].clip(low, high)
        counts = np.histogram(of_kind, curves["histogram_edges"])[0]
        curves[f"histogram_{kind}"] = (counts / max(counts.sum(), 1)).tolist()
    return curves


def _differences(measured: _RowValues, reference: _RowValues) -> dict[str, RowDifference]:
    """Return the differences of the compared metrics, over the seeds of ``measured``.

    The intervals over images compare the means over all seeds of each row.
    """
    intervals = bench_resampling_difference_intervals(measured.resampled, reference.resampled)
    n_seeds = len(measured.metrics[SELECTION_METRIC])
    references = {name: reference.metrics[name][:n_seeds] for name in intervals}
    return row_differences(measured.metrics, references, intervals)


def _time_step(dataset: CaptionSplits, plan: SimilarityPlan, setting: SimilaritySetting) -> float:
    """Return the mean processor time of an optimizer step in a short fit, in seconds."""
    n_images = min(len(dataset.train.paths), TIMED_STEPS * plan.batch_size // 5)
    data = dataset.encode(dataset.train.take(range(n_images)))
    steps = -(-len(data.image_rows) // plan.batch_size)
    run = plan.run_of(setting, dataset.labelled.encoder_name, 0, plan.learning_rates[0])
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_recognizer_method_on_pairs(replace(run, epochs=1), dataset.encoder, [], data)
    return (time.process_time() - start) / steps


def _tagger_row(task: SimilarityTask, method: str) -> TaggerRow:
    """Fit a method on the base labels, and return the metrics of base and new labels."""
    plan, images = task.plan, task.dataset.labelled
    n_seeds = 1 if method == ZERO_SHOT else plan.ablation_seeds
    of_seeds = []
    for seed in task.seeds(n_seeds):
        run = Run(
            encoder=Choice(images.encoder_name),
            method=Choice(method),
            calibrator=Choice("platt"),
            seed=seed,
        )
        shots = 0 if method == ZERO_SHOT else plan.tagger_shots
        fit = BaseNewFit(run, HALVES, shots, domains=plan.domains)
        predictions = predict_base_and_new(task.cache, images, fit)
        metrics, _ = cached_base_new_metrics(
            task.cache, images, fit, predictions, resamples=plan.resamples
        )
        of_seeds.append(metrics)
    return TaggerRow(title=method, metrics=metrics_by_seed(of_seeds), method=method)
