"""Compute and cache the metrics of predictions for base and new labels."""

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.bench.base_new_predictions import (
    CALIBRATED,
    RAW,
    BaseNewFit,
    BaseNewPredictions,
    base_new_readouts,
)
from surelabel.bench.base_new_splits import BaseNewSplits
from surelabel.bench.class_group_metrics import (
    BASE,
    NEW,
    RESAMPLED_METRICS,
    ClassGroups,
    class_group_metrics,
    class_group_resampling,
    class_group_text_metrics,
)
from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.data import align_to_vocabulary
from surelabel.metrics import POOLED, class_frequency_thirds, metric_per_class_group
from surelabel.records import LabelledImages

DOMAIN_METRICS = ("accuracy", "balanced_accuracy", "ece")
NEIGHBOURS = (1, 5, 10)  # numbers of nearest labels of text metrics
COMPARED_METRICS = tuple(
    f"{readout}_{group}_{metric}"
    for readout in (RAW, CALIBRATED)
    for group in (BASE, NEW)
    for metric in RESAMPLED_METRICS
)


def base_new_test_and_groups(
    images: BaseNewSplits, fit: BaseNewFit
) -> tuple[LabelledImages, ClassGroups]:
    """Return the test images with base labels first, and the columns of the groups of labels.

    The groups are ``base`` and ``new``, and the thirds ``head``, ``medium`` and ``tail`` of the
    base labels by their frequency in the training images.

    Args:
        images: Training and test images.
        fit: Fit with the split of the labels.
    """
    vocabulary = fit.vocabulary(images)
    test, _ = align_to_vocabulary(images.test, vocabulary.names)
    train, _ = align_to_vocabulary(images.train, vocabulary.seen)
    columns, n_base = np.arange(len(vocabulary.names)), len(vocabulary.seen)
    thirds = class_frequency_thirds(train.targets, train.known)
    return test, {BASE: columns[:n_base], NEW: columns[n_base:]} | thirds


def cached_base_new_metrics(
    cache: ResultCache,
    images: BaseNewSplits,
    fit: BaseNewFit,
    predictions: BaseNewPredictions,
    *,
    resamples: int,
    dac: bool = False,
) -> tuple[dict[str, float], dict[str, Array]]:
    """Return all metrics of one fit, and the ``COMPARED_METRICS`` on resamples of the test images.

    Keys consist of the readout, the group of labels and the metric, such as ``raw_new_ece``; see
    ``class_group_metrics``. In other domains, the domain follows the readout, as in
    ``raw_night_new_ece``. The metrics of ``class_group_text_metrics`` have no readout.

    Args:
        cache: Cache of the metrics.
        images: Validation and test images.
        fit: Settings of the fit.
        predictions: Predictions of the fit.
        resamples: Number of resamples.
        dac: Whether the log-odds of new labels are multiplied by the factors of ``Dac``.

    Returns:
        Values of the metrics, and values of each compared metric, ``(1 + resamples,)``. The first
        value of a compared metric is that of the test images themselves.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    test, groups = base_new_test_and_groups(images, fit)
    readouts = base_new_readouts(predictions, images, fit, dac=dac)
    texts = predictions.texts
    digest = result_cache_digest(
        *(logits for of_readout in readouts.values() for logits in of_readout.values()),
        *(texts.zero_shot, texts.tuned),
    )

    def metrics() -> dict[str, float]:
        values = dict[str, float]()
        for k in NEIGHBOURS:
            values |= class_group_text_metrics(texts.tuned, texts.zero_shot, groups, neighbours=k)
        for readout, logits in readouts.items():
            of_test = class_group_metrics(logits["photo"], test, groups, images.test_proximity)
            values |= {f"{readout}_{name}": value for name, value in of_test.items()}
            for domain in fit.domains:
                values |= {
                    f"{readout}_{domain}_{group}_{name}": value
                    for name in DOMAIN_METRICS
                    for group, value in metric_per_class_group(
                        POOLED[name], expit(logits[domain]), test.targets, test.known, groups
                    ).items()
                }
        return values

    def resampled() -> dict[str, Array]:
        return {
            f"{readout}_{name}": values
            for readout, logits in readouts.items()
            for name, values in class_group_resampling(
                logits["photo"], test, groups, resamples=resamples
            ).items()
        }

    return (
        cache.load_or_compute("metrics", images.fingerprint, digest, compute=metrics),
        cache.load_or_compute_arrays(
            *("resampled", images.fingerprint, digest, resamples),
            shapes=dict.fromkeys(COMPARED_METRICS, (1 + resamples,)),
            compute=resampled,
        ),
    )
