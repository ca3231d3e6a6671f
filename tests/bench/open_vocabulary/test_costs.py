from dataclasses import replace
from types import SimpleNamespace

import pytest

from surelabel.bench.open_vocabulary.costs import measure_run_cost
from surelabel.bench.open_vocabulary.fitted_rows import run_of_fitted_row
from surelabel.recognizer import Recognizer


@pytest.mark.filterwarnings("ignore:.* no positive image", "ignore:Only 1 training image")
def test_speeds_leave_out_decoding_and_what_is_done_once_for_all_epochs(
    archive, small, monkeypatch
):
    """Prediction takes 8 s, 3 of them decoding; a fit takes 5 s, and 2 s for each epoch."""
    now, fit, predict = [0.0], Recognizer.fit, Recognizer.predict
    clock = SimpleNamespace(process_time=lambda: now[0])
    monkeypatch.setattr("surelabel.bench.open_vocabulary.costs.time", clock)

    def slow_fit(self, *arguments, **options):
        now[0] += 5 + 2 * self.run.epochs
        return fit(self, *arguments, **options)

    def slow_predict(self, *arguments, **options):
        now[0] += 8
        found = predict(self, *arguments, **options)
        return replace(found, encoding_stats=replace(found.encoding_stats, decode_seconds=3.0))

    monkeypatch.setattr(Recognizer, "fit", slow_fit)
    monkeypatch.setattr(Recognizer, "predict", slow_predict)
    run = run_of_fitted_row("photo", {"method": {"name": "clip_adapter"}}, small, 0)
    measured = measure_run_cost(run, archive.train.take(range(4)))
    assert measured["predict_images_per_second"] == pytest.approx(4 / (8 - 3))
    assert measured["train_images_per_second"] == pytest.approx(4 / 2)
