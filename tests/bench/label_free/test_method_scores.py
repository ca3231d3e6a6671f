from types import SimpleNamespace

import pytest

from surelabel.bench.label_free.method_scores import label_free_method_scores
from surelabel.bench.label_free.rows import label_free_row_metrics
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Choice, Run
from surelabel.recognizer import Recognizer


@pytest.mark.filterwarnings("ignore:.* no positive image")
def test_the_cost_of_an_image_is_the_faster_of_two_runs_without_counting_of_operations(
    images, tmp_path, monkeypatch
):
    now, predict = [5.0], Recognizer.predict
    clock = SimpleNamespace(process_time=lambda: now[0])
    monkeypatch.setattr("surelabel.bench.label_free.method_scores.time", clock)
    seconds = iter([12, 6, 1])  # the last run, which counts operations, is not timed

    def slow(self, source, **options):
        if options:  # predictions with the default options are not timed either
            now[0] += next(seconds)
        return predict(self, source, **options)

    monkeypatch.setattr(Recognizer, "predict", slow)
    run = Run(encoder=Choice("tiny-rn"), method=Choice("linear"), epochs=1)
    n_trained = sum(p.numel() for p in Recognizer(run, images.test.names).method.parameters())
    for _ in ("measured", "read from the cache"):
        found = label_free_method_scores(ResultCache(tmp_path), images, run, 6)
        assert (found.parameters, found.passes, found.seconds) == (n_trained, 1.0, 6 / 6)
        assert found.flops > 1e6
    metrics = label_free_row_metrics(found, images)
    for name in ("parameters", "passes", "flops", "seconds"):
        assert metrics[name] == pytest.approx(getattr(found, name))
    assert next(seconds, None) is None
