"""Measure the rows of the label-free comparison on the test images."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.bench.label_free.method_scores import MethodScores
from surelabel.bench.label_free.plan import (
    MULTI_PASS_METHODS,
    ONE_PASS_METHODS,
    SCALE_SHARES,
    LabelFreePlan,
    label_free_plan_crops,
)
from surelabel.bench.label_free.scene_splits import LabelFreeSplits
from surelabel.bench.linear_before_centring import LINEAR_BEFORE_CENTRING
from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.bench.rows import ComparisonRow, metrics_by_seed
from surelabel.calibration import Platt
from surelabel.config import Choice, Run
from surelabel.encoders import load_encoder
from surelabel.evaluation import measure_one_positive_bias
from surelabel.metrics import POOLED, bootstrap_interval, noise_floor, paired_bootstrap_interval

RESAMPLES = 200  # resamples of the test images for each interval
RANKING_METRICS = ("mean_average_precision", "mean_average_precision_per_image")
PLATT_IMAGES = 100  # annotated images for Platt scaling
PLATT_SAMPLES = 5  # samples of ``PLATT_IMAGES`` images
CALIBRATION_METRICS = ("brier_skill", "log_loss", "ece", "ece_of_candidates")

mean_average_precision: Callable[..., float] = POOLED["mean_average_precision"]


@dataclass(frozen=True)
class LabelFreeRow(ComparisonRow):
    """One row of the label-free tables.

    Attributes:
        interval: Bounds of the 95 % interval of the mean average precision over test images, for
            the first seed.
        gain: Difference in mean average precision from the best row with one encoder pass, and the
            bounds of the 95 % interval over test images, for the first seed. For the best row
            itself, the gain is None.
    """

    interval: tuple[float, float]
    gain: tuple[float, float, float] | None = None


def label_free_row_runs(
    images: LabelFreeSplits, plan: LabelFreePlan, seed: int
) -> dict[str, list[Run]]:
    """Return the runs of each row, one for each seed, by row title.

    Args:
        images: Train, validation and test images.
        plan: Sizes and settings of the comparison.
        seed: Seed of the runs. Rows with several seeds use consecutive seeds, starting with
            ``seed``.
    """
    encoder_scale = load_encoder(images.encoder).scale
    methods = ONE_PASS_METHODS | MULTI_PASS_METHODS
    runs = {
        title: [_run_of_label_free_row(images, method, seed)] for title, method in methods.items()
    }
    for title, share in SCALE_SHARES.items():
        method = methods[title]
        scaled = Choice(method.name, method.settings | {"scale": share * encoder_scale})
        runs[title] = [_run_of_label_free_row(images, scaled, seed)]
    for count in plan.crop_counts:
        n_seeds = plan.crop_seeds if count == plan.reseeded_crop_count else 1
        runs[f"crops, M = {count}"] = [
            _run_of_label_free_row(images, label_free_plan_crops(count, crop_seed), seed)
            for crop_seed in range(seed, seed + n_seeds)
        ]
    student = replace(
        _run_of_label_free_row(images, Choice("tailor"), seed), epochs=plan.student_epochs
    )
    runs["cut and sew"] = [replace(student, seed=seed + i) for i in range(plan.student_seeds)]
    probe = _run_of_label_free_row(images, LINEAR_BEFORE_CENTRING, seed)
    runs["linear probe, all labels"] = [probe]
    return runs


def best_one_pass_label_free_row(
    scores: Mapping[str, list[MethodScores]], images: LabelFreeSplits
) -> str:
    """Return the title of the row with one encoder pass and the best validation mAP.

    Args:
        scores: Scores of each seed, by title.
        images: Images whose validation targets are used.
    """
    validation = images.validation

    def validation_map(title: str) -> float:
        return mean_average_precision(
            scores[title][0].validation, validation.targets, validation.known
        )

    return max(ONE_PASS_METHODS, key=validation_map)


def label_free_row(
    title: str,
    scores: list[MethodScores],
    reference: tuple[str, Array],
    images: LabelFreeSplits,
    cache: ResultCache,
) -> LabelFreeRow:
    """Return one row, with its metrics on the test images and its gain over the reference.

    Args:
        title: Title of the row.
        scores: Scores of each seed.
        reference: Title and test scores of the best row with one encoder pass.
        images: Images whose test targets are used.
        cache: Cache of the metrics.
    """
    test = images.test
    reference_title, reference_scores = reference

    def compute() -> dict[str, Any]:
        interval = bootstrap_interval(
            mean_average_precision, scores[0].test, test.targets, test.known, resamples=RESAMPLES
        )
        gain = paired_bootstrap_interval(
            mean_average_precision,
            scores[0].test,
            reference_scores,
            test.targets,
            test.known,
            resamples=RESAMPLES,
        )
        return {
            "metrics": metrics_by_seed(
                [label_free_row_metrics(scores_of_seed, images) for scores_of_seed in scores]
            ),
            "interval": [interval.low, interval.high],
            "gain": None if is_reference else [gain.value, gain.low, gain.high],
        }

    is_reference = title == reference_title
    arrays = [array for of_seed in scores for array in (of_seed.test, of_seed.logits)]
    costs = [
        (of_seed.parameters, of_seed.passes, of_seed.flops, of_seed.seconds) for of_seed in scores
    ]
    digest = result_cache_digest(*arrays, reference_scores)
    row = cache.load_or_compute(
        "row", images.fingerprint, is_reference, digest, costs, compute=compute
    )
    gain = row["gain"] and tuple(row["gain"])
    return LabelFreeRow(title, row["metrics"], tuple(row["interval"]), gain)


def label_free_row_metrics(scores: MethodScores, images: LabelFreeSplits) -> dict[str, float]:
    """Return all metrics of one recognizer on the test images.

    Args:
        scores: Scores and cost of the recognizer.
        images: Images whose test targets are used.
    """
    test, p = images.test, expit(scores.logits)
    recall = measure_one_positive_bias(scores.test, test.targets, images.main_columns, test.known)
    return {
        **{name: POOLED[name](scores.test, test.targets, test.known) for name in RANKING_METRICS},
        "recall_of_main": recall.main_recall,
        "recall_of_others": recall.other_recall,
        **{name: POOLED[name](p, test.targets, test.known) for name in CALIBRATION_METRICS},
        "ece_noise_floor": float(noise_floor(POOLED["ece"], p, test.known, resamples=5)),
        **label_free_row_expected_count_metrics(p, test.targets),
        **label_free_row_platt_metrics(scores, images),
        "passes": scores.passes,
        "flops": scores.flops,
        "seconds": scores.seconds,
        "parameters": float(scores.parameters),
    }


def label_free_row_platt_metrics(scores: MethodScores, images: LabelFreeSplits) -> dict[str, float]:
    """Return the mean Brier skill and ECE of Platt scaling on 5 samples of 100 annotated images.

    Args:
        scores: Scores of the recognizer.
        images: Images whose validation and test targets are used.
    """
    validation, test = images.validation, images.test
    values = []
    for seed in range(PLATT_SAMPLES):
        rows = np.random.default_rng(seed).permutation(len(validation))[:PLATT_IMAGES]
        platt = Platt().fit(
            scores.validation[rows], validation.targets[rows], validation.known[rows]
        )
        p = expit(platt.logits(scores.test))
        values.append(
            [POOLED[name](p, test.targets, test.known) for name in ("brier_skill", "ece")]
        )
    brier_skill, ece = np.mean(values, axis=0).tolist()
    return {"brier_skill_of_platt": brier_skill, "ece_of_platt": ece}


def label_free_row_expected_count_metrics(p: Array, targets: Array) -> dict[str, float]:
    """Return micro-F1 at the expected number of labels, best micro-F1, and labels per image.

    The expected number of labels is the sum of all probabilities. The decisions with the highest
    probabilities are predicted as positive. The best F1 is the maximum over all thresholds.

    Args:
        p: Probabilities, ``(n, c)``.
        targets: Targets, 1 for positive, ``(n, c)``.
    """
    order = np.argsort(-p, axis=None, kind="stable")
    true_positives = np.cumsum(targets.ravel()[order])
    f1 = 2 * true_positives / (np.arange(1, p.size + 1) + true_positives[-1])
    expected = p.sum()
    return {
        "expected_labels": float(expected / len(p)),
        "true_labels": float(targets.sum() / len(p)),
        "f1": float(f1[min(max(round(expected), 1), p.size) - 1]),
        "best_f1": float(f1.max()),
    }


def _run_of_label_free_row(images: LabelFreeSplits, method: Choice, seed: int) -> Run:
    return Run(encoder=Choice(images.encoder), method=method, calibrator=Choice("beta"), seed=seed)
