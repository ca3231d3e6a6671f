"""Compute and cache the metrics of test predictions of the supervised comparison."""

from scipy.special import expit

from surelabel.arrays import Array
from surelabel.bench.image_splits import EncoderImageSplits
from surelabel.bench.resampling import (
    BenchResampling,
    bench_resampling_mean_average_precision,
    bench_resampling_weights,
)
from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.bench.supervised.fits import SupervisedPredictions
from surelabel.metrics import POOLED, noise_floor

MAP = "mean_average_precision"
COMPARED_METRICS = (MAP, "brier_skill", "log_loss")
CALIBRATION_METRICS = ("brier_skill", "log_loss", "ece")
FLOOR_RESAMPLES = 5


def supervised_metrics(
    cache: ResultCache,
    images: EncoderImageSplits,
    predictions: SupervisedPredictions,
    *,
    resamples: int,
) -> tuple[dict[str, float], dict[str, Array]]:
    """Return all metrics of one recognizer, and ``COMPARED_METRICS`` on resamples of the images.

    Args:
        cache: Cache of the metrics.
        images: Test images.
        predictions: Test predictions of the recognizer.
        resamples: Number of resamples.

    Returns:
        Values of mAP, of ``CALIBRATION_METRICS``, of the noise floor of the ECE and of the cost,
        and values of each compared metric, ``(1 + resamples,)``. The first value of a compared
        metric is that of the test images themselves.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    test, digest = images.test, result_cache_digest(predictions.scores, predictions.logits)

    def metrics() -> dict[str, float]:
        p = expit(predictions.logits)
        return {
            MAP: float(POOLED[MAP](predictions.scores, test.targets, test.known)),
            **{
                name: float(POOLED[name](p, test.targets, test.known))
                for name in CALIBRATION_METRICS
            },
            "ece_noise_floor": float(
                noise_floor(POOLED["ece"], p, test.known, resamples=FLOOR_RESAMPLES)
            ),
        }

    def resampled() -> dict[str, Array]:
        resampling = BenchResampling(test.targets, test.known, resamples=resamples)
        values = resampling.metrics(predictions.logits)
        weights = bench_resampling_weights(len(test), resamples=resamples)
        values[MAP] = bench_resampling_mean_average_precision(
            predictions.scores, test.targets == 1, weights
        )
        return {name: values[name] for name in COMPARED_METRICS}

    cost = {"passes": predictions.passes, "seconds": predictions.seconds}
    return (
        cache.load_or_compute("metrics", images.fingerprint, digest, compute=metrics) | cost,
        cache.load_or_compute_arrays(
            *("resampled", images.fingerprint, digest, resamples),
            shapes=dict.fromkeys(COMPARED_METRICS, (1 + resamples,)),
            compute=resampled,
        ),
    )
