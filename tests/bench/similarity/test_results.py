from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench import ComparisonTask, ResultCache
from surelabel.bench.similarity import SIMILARITY, similarity_plan_with_epochs
from surelabel.bench.similarity.plan import VACSR
from surelabel.bench.similarity.results import MAIN, NOISE, SENSITIVITY
from surelabel.config import load_run
from surelabel.evaluation import evaluate_pair_scores
from surelabel.recognizer import Recognizer, score_pairs


def row(results, title, table=MAIN, noise=0.0):
    rows = [r for r in results.tables[table] if r.title == title and r.setting.noise == noise]
    return rows[0]


def test_zero_shot_has_the_metrics_of_evaluate(results, splits):
    scored = score_pairs(Recognizer.zero_shot("tiny-vit", ["lion"]), splits.test)
    expected = evaluate_pair_scores(scored.scores, splits.test)
    found = row(results, "zero-shot")
    for title, direction in expected.directions.items():
        for metric in ("recall_at_1", "relevant_map_at_r", "relevant_r_precision"):
            name = f"{title}_{metric}"
            assert found.metrics[name] == [pytest.approx(direction.metrics[metric])]
    assert found.metrics["rsum"] == [pytest.approx(expected.rsum)]
    mean = np.mean([d.metrics["relevant_map_at_r"] for d in expected.directions.values()])
    assert found.metrics["relevant_map_at_r"] == [pytest.approx(mean)]


def test_a_row_has_the_metrics_of_its_fit(results, splits):
    found = row(results, "sigmoid loss", NOISE, 0.5)
    run = results.plan.run_of(found.setting, "tiny-vit", 1, found.learning_rate)
    fitted = Recognizer(run, []).fit(splits.train.with_noise(0.5, seed=1))
    scored = score_pairs(fitted, splits.test)
    expected = evaluate_pair_scores(scored.scores, splits.test).rsum
    assert found.metrics["rsum"][1] == pytest.approx(expected)


def test_differences_are_those_of_the_means_over_seeds(results):
    vacsr, sigmoid = row(results, "VACSR"), row(results, "sigmoid loss")
    for metric, difference in vacsr.differences["sigmoid loss"].items():
        expected = vacsr.mean(metric) - sigmoid.mean(metric)
        assert difference.value == pytest.approx(expected)
        assert difference.over_images.value == pytest.approx(expected)
        assert difference.over_images.low <= expected <= difference.over_images.high
    assert row(results, "zero-shot").differences == {}
    assert vacsr.setting == VACSR


def test_histograms_are_shares_of_all_pairs(results):
    curves = row(results, "VACSR").curves
    for kind in ("own", "false_negative", "true_negative"):
        assert sum(curves[f"histogram_{kind}"]) == pytest.approx(1)
    assert len(curves["image_to_caption_uncertainty"]) == 10


def test_the_sensitivity_rows_have_one_seed_and_the_learning_rate_of_vacsr(results):
    first, other = results.tables[SENSITIVITY]
    assert (first.title, other.title) == ("VACSR", "gamma = 0")
    assert len(other.metrics["rsum"]) == 1
    assert other.learning_rate == first.learning_rate in (0.0005, 0.002)


def test_an_interrupted_comparison_resumes_without_another_fit(results, splits, cache):
    before = cache.n_computed
    again = SIMILARITY.measure(ComparisonTask(splits, results.plan, cache))
    assert cache.n_computed == before
    assert repr(again.tables) == repr(results.tables)  # with undefined values


def test_epochs_are_set_by_timed_steps(splits, cache, results):
    plan = similarity_plan_with_epochs([splits], replace(results.plan, minutes=1e9), cache)
    assert plan.epochs == 10
    assert similarity_plan_with_epochs([splits], replace(plan, minutes=0.0), cache).epochs == 1


def test_noise_permutes_the_captions_of_the_fit_only(splits):
    clean, noisy = splits.noisy_train_data(0.0, 0), splits.noisy_train_data(0.5, 0)
    assert (clean.text_rows != noisy.text_rows).any()
    assert sorted(clean.image_rows) == sorted(noisy.image_rows)
    assert load_run(None, ["method.name=variational"]).method.name == VACSR.method


def test_fits_with_a_warning_about_noise_inflation_are_counted(
    results, splits, tmp_path, monkeypatch
):
    module = "surelabel.methods.variational.noise_inflation"
    monkeypatch.setattr(f"{module}.WARM_UP_STEPS", 1)
    monkeypatch.setattr(f"{module}.MAX_MEAN_LOG_VARIANCE", -100.0)  # each fit warns
    changes = {"seeds": 1, "noise_ratios": (), "learning_rates": (0.002,), "sensitivity": {}}
    task = ComparisonTask(
        splits, replace(results.plan, taggers=(), **changes), ResultCache(tmp_path)
    )
    rows = SIMILARITY.measure(task).tables[MAIN]
    flags = {r.title: r.metrics["noise_inflation"] for r in rows}
    assert flags["VACSR"] == flags["VACSR, detached"] == [1.0]
    assert flags["sigmoid loss"] == flags["zero-shot"] == [0.0]
