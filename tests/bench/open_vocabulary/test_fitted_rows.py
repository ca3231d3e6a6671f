from types import SimpleNamespace

import pytest

from surelabel.bench.open_vocabulary.fitted_rows import (
    predictions_of_fitted_row,
    run_of_fitted_row,
)
from surelabel.bench.result_cache import ResultCache
from surelabel.recognizer import Recognizer


@pytest.mark.filterwarnings("ignore:.* no positive image")
def test_the_time_of_a_row_is_that_of_fitting_calibration_and_prediction(
    archive, small, tmp_path, monkeypatch
):
    now = [5.0]
    clock = SimpleNamespace(process_time=lambda: now[0])
    monkeypatch.setattr("surelabel.bench.open_vocabulary.fitted_rows.time", clock)

    def slowed(act, seconds):
        def slow(self, source):
            now[0] += seconds
            return act(self, source)

        return slow

    for name, seconds in (("fit", 1), ("calibrate", 10), ("predict", 100)):
        monkeypatch.setattr(Recognizer, name, slowed(getattr(Recognizer, name), seconds))
    run = run_of_fitted_row("photo", {"method": {"name": "clip_adapter"}}, small, 0)
    method = Recognizer(run, archive.vocabulary.seen).method
    n_trained = sum(p.numel() for p in method.parameters() if p.requires_grad)
    for _ in ("measured", "read from the cache"):
        found = predictions_of_fitted_row(ResultCache(tmp_path), archive, run)
        assert (found.seconds, found.parameters) == (111.0, n_trained)
    assert now == [5.0 + 111.0]
