import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench import ResultCache
from surelabel.bench.supervised.fits import SupervisedPredictions
from surelabel.bench.supervised.metrics import COMPARED_METRICS, supervised_metrics
from surelabel.metrics import POOLED


def test_the_first_resample_is_the_test_split_itself(images, tmp_path):
    test, random = images.test, np.random.default_rng(0)
    predictions = SupervisedPredictions(
        *(random.normal(size=test.targets.shape) for _ in range(2)), passes=14, seconds=2.5
    )
    cache = ResultCache(tmp_path)
    metrics, resampled = supervised_metrics(cache, images, predictions, resamples=20)
    assert tuple(resampled) == COMPARED_METRICS
    for name, values in resampled.items():
        assert values.shape == (21,)
        assert values[0] == pytest.approx(metrics[name])
    p = expit(predictions.logits)
    assert metrics["ece"] == POOLED["ece"](p, test.targets, test.known)
    ranked = POOLED["mean_average_precision"](predictions.scores, test.targets, test.known)
    assert metrics["mean_average_precision"] == ranked
    assert 0 < metrics["ece_noise_floor"] < 1
    assert (metrics["passes"], metrics["seconds"]) == (14, 2.5)
