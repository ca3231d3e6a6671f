"""Compute metrics of groups of labels, such as base and new labels, and the means of both."""

from collections.abc import Callable, Mapping

import torch
from scipy.special import expit

from surelabel.arrays import Array, ColumnIndices
from surelabel.bench.resampling import (
    BenchResampling,
    bench_resampling_mean_average_precision,
    bench_resampling_weights,
)
from surelabel.metrics import (
    POOLED,
    RANKING,
    BaseAndNew,
    embedding_divergence,
    metric_per_class_group,
    neighbourhood_preservation,
    noise_floor,
    piece,
)
from surelabel.metrics.arrays.nan_division import mean_ignoring_nan
from surelabel.records import LabelledImages
from surelabel.regularizers.covariance.prediction_covariance import (
    prediction_correlation,
    prediction_covariance_text_similarity,
)

ClassGroups = Mapping[str, ColumnIndices]
BASE, NEW = "base", "new"
HARMONIC, ARITHMETIC = "harmonic", "arithmetic"
GROUP_METRICS = (
    "mean_average_precision",
    "accuracy",
    "balanced_accuracy",
    "brier_skill",
    "log_loss",
    "ece",
    "ace",
    "mce",
    "mce_weighted",
    "piece",
)
RESAMPLED_METRICS = ("brier_skill", "log_loss", "ece", "ace", "mean_average_precision")
EPSILON = 1e-6  # added to each variance; the default of ``class_covariance``
NOISE_FLOOR_RESAMPLES = 5  # simulated targets for each noise floor


def class_group_metrics(
    logits: Array, test: LabelledImages, groups: ClassGroups, proximity: Array
) -> dict[str, float]:
    """Return the metrics of each group of labels, and the means over base and new labels.

    Args:
        logits: Log-odds of n test images and c labels, ``(n, c)``.
        test: Test images with the targets of the c labels.
        groups: Columns of the labels of each group, including the groups ``base`` and ``new``.
        proximity: Proximity of each test image, ``(n,)``; see ``piece``.

    Returns:
        Values with keys such as ``base_ece``, ``harmonic_ece`` and ``arithmetic_ece``. The noise
        floor of the ECE has the key ``base_ece_noise_floor``.
    """
    probabilities, values = expit(logits), dict[str, float]()
    for name in GROUP_METRICS:
        metric: Callable[..., float] = _piece_metric(proximity) if name == "piece" else POOLED[name]
        inputs = logits if name in RANKING else probabilities
        by_group = metric_per_class_group(metric, inputs, test.targets, test.known, groups)
        base_and_new = BaseAndNew(by_group[BASE], by_group[NEW])
        by_group[HARMONIC] = base_and_new.harmonic_mean
        by_group[ARITHMETIC] = base_and_new.arithmetic_mean
        values |= {f"{group}_{name}": float(value) for group, value in by_group.items()}
    for group in (BASE, NEW):
        columns = groups[group]
        values[f"{group}_ece_noise_floor"] = float(
            noise_floor(
                POOLED["ece"],
                probabilities[:, columns],
                test.known[:, columns],
                resamples=NOISE_FLOOR_RESAMPLES,
            )
        )
    return values


def class_group_resampling(
    logits: Array, test: LabelledImages, groups: ClassGroups, *, resamples: int
) -> dict[str, Array]:
    """Return metrics of base and new labels on the test images and on each of their resamples.

    All targets must be known.

    Args:
        logits: Log-odds of n test images and c labels, ``(n, c)``.
        test: Test images with the targets of the c labels.
        groups: Columns of the labels of each group, including the groups ``base`` and ``new``.
        resamples: Number of resamples.

    Returns:
        Values with keys such as ``base_ece``, ``(1 + resamples,)`` each. The first value is the
        metric of the original test images.
    """
    values = dict[str, Array]()
    weights = bench_resampling_weights(len(test), resamples=resamples)
    for group in (BASE, NEW):
        columns = groups[group]
        targets, known = test.targets[:, columns], test.known[:, columns]
        bootstrap = BenchResampling(targets, known, resamples=resamples)
        metrics = bootstrap.metrics(logits[:, columns])
        metrics["mean_average_precision"] = bench_resampling_mean_average_precision(
            logits[:, columns], targets > 0, weights
        )
        values |= {f"{group}_{name}": metrics[name] for name in RESAMPLED_METRICS}
    return values


def class_group_text_metrics(
    tuned: Array, frozen: Array, groups: ClassGroups, *, neighbours: int
) -> dict[str, float]:
    """Return the mean embedding divergence and neighbourhood preservation of each group.

    The nearest labels are searched among the labels of all groups.

    Args:
        tuned: Text vectors of c labels from learned prompts, ``(c, d)``.
        frozen: Text vectors from the frozen text encoder, ``(c, d)``.
        groups: Columns of each group.
        neighbours: Number of nearest labels.

    Returns:
        Values with keys such as ``new_embedding_divergence_at_5`` and
        ``new_neighbourhood_preservation_at_5``.
    """
    by_label = {
        "embedding_divergence": embedding_divergence(tuned, neighbours=neighbours),
        "neighbourhood_preservation": neighbourhood_preservation(
            tuned, frozen, neighbours=neighbours
        ),
    }
    return {
        f"{group}_{name}_at_{neighbours}": mean_ignoring_nan(values[columns])
        for name, values in by_label.items()
        for group, columns in groups.items()
    }


def covariance_errors(logits: Array, texts: Array, test: LabelledImages) -> Array:
    """Return the correlation of predictions minus the text similarity of each pair of labels.

    The correlation is computed on images with negative targets.

    Args:
        logits: Log-odds of n test images and c labels, ``(n, c)``.
        texts: Text vectors of the labels from the frozen text encoder, ``(c, d)``.
        test: Test images with known targets of the c labels.

    Returns:
        Differences in [-2, 2], ``(c, c)``, with 0 on the diagonal; see ``class_covariance``.
    """
    correlation = prediction_correlation(
        torch.from_numpy(expit(logits)),
        torch.from_numpy(1 - test.targets),
        torch.tensor(float(len(test))),
        epsilon=EPSILON,
    )
    similarity = prediction_covariance_text_similarity(torch.from_numpy(texts), "cosine")
    return (correlation - similarity).fill_diagonal_(0).numpy()


def _piece_metric(proximity: Array) -> Callable[..., float]:
    return lambda p, y, known: piece(p, y, proximity, known)
