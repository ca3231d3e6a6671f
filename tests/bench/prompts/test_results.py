import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench import ComparisonTask, ResultCache, write_comparison
from surelabel.bench.base_new_predictions import base_new_readouts, predict_base_and_new
from surelabel.bench.prompts import PROMPTS, plan_with_epochs
from surelabel.bench.prompts.plan import CCR, DAC, NONE, PromptSetting
from surelabel.bench.prompts.results import CURVE, WEIGHTS, measure_prompt_results
from surelabel.metrics import POOLED


def row(results, title, table="binary"):
    return next(row for row in results.tables[table] if row.title == title)


def test_a_second_run_reads_what_the_first_computed(images, folder, results, plan):
    cache = ResultCache(folder / "cache")
    again = measure_prompt_results(ComparisonTask(images, plan, cache))
    assert cache.n_computed == 0
    assert repr(again) == repr(results)  # NaN equals nothing


def test_the_files_contain_all_rows_and_figures(images, folder, results, plan):
    page, value = write_comparison(PROMPTS, [images], plan, folder)
    assert (folder / "prompts.md").read_text(encoding="utf-8") == page
    assert json.loads((folder / "prompts.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(value)
    )
    for rows in results.tables.values():
        assert all(f"| {row.title} |" in page for row in rows)
    for name in PROMPTS.figures:
        assert (folder / name).stat().st_size > 5_000


def test_the_rows_are_zero_shot_and_all_variants(results):
    assert [row.title for row in results.tables["binary"]] == [
        "zero-shot",
        *(
            f"{tuner}, {variant}"
            for tuner in ("coop", "t2i_pal (test distribution)", "t2i_pal (sketch)")
            for variant in (NONE, DAC, CCR)
        ),
    ]
    assert [row.title for row in results.tables[CURVE]] == [
        f"{shots} shots, {variant}" for shots in (2, 3) for variant in (NONE, CCR)
    ]
    assert [row.setting.variant for row in results.tables[WEIGHTS]] == [NONE, CCR]


def test_values_are_those_of_the_predictions(images, folder, results, plan):
    setting = PromptSetting("coop", variant=CCR, shots=2)
    cache = ResultCache(folder / "cache")
    for seed in (0, 1):
        fit = plan.fit_of(setting, images, seed)
        predictions = predict_base_and_new(cache, images, fit)
        logits = base_new_readouts(predictions, images, fit)
        metrics = row(results, "coop, CCR").metrics
        for readout in ("raw", "calibrated"):
            p, y = expit(logits[readout]["photo"]), images.test.targets
            for group, columns in (("base", [0, 1, 2]), ("new", [3, 4, 5])):
                for name in ("brier_skill", "ece", "accuracy"):
                    value = metrics[f"{readout}_{group}_{name}"][seed]
                    assert value == pytest.approx(POOLED[name](p[:, columns], y[:, columns]))
    assert cache.n_computed == 0


def test_differences_are_those_of_the_means_from_the_row_without_regularizer(results):
    none, ccr = row(results, "coop, none"), row(results, "coop, CCR")
    assert not none.differences
    for metric in ("raw_new_brier_skill", "calibrated_base_mean_average_precision"):
        difference = ccr.differences[metric]
        assert difference.value == pytest.approx(ccr.mean(metric) - none.mean(metric))
        assert difference.over_images.value == pytest.approx(difference.value)


def test_dac_trains_nothing_and_keeps_base_labels_and_the_order(results):
    none, dac = row(results, "coop, none"), row(results, "coop, DAC")
    assert dac.setting == none.setting
    for metric in ("raw_base_log_loss", "calibrated_base_ece", "raw_new_mean_average_precision"):
        assert dac.metrics[metric] == pytest.approx(none.metrics[metric])
    assert dac.metrics["raw_new_log_loss"] != none.metrics["raw_new_log_loss"]


def test_only_the_studied_rows_have_other_domains(images, results):
    for variant in (NONE, CCR):
        metrics = row(results, f"coop, {variant}").metrics
        assert 0 <= metrics["raw_night_new_accuracy"][0] <= 1
        assert "raw_night_new_accuracy" not in row(results, f"3 shots, {variant}", CURVE).metrics


def test_synthesized_images_of_two_domains_give_two_rows(results):
    photo, sketch = (
        row(results, f"t2i_pal ({domain}), none") for domain in ("test distribution", "sketch")
    )
    metric = "raw_new_log_loss"
    assert photo.metrics[metric] != sketch.metrics[metric]
    assert photo.parameters == sketch.parameters > 8_000
    assert set(results.costs["t2i_pal"]) == {NONE, CCR}


def test_samples_and_covariance_describe_the_first_fit(images, results):
    assert results.sample[0].startswith("Sampled ")
    assert [counts["shots"] for counts in results.shot_counts] == [2, 3]
    available = images.train.targets[:, :3].sum(axis=0)
    for counts in results.shot_counts:
        assert min(counts["shots"], available.min()) <= counts["least"] <= counts["most"]
        assert counts["most"] <= available.max()
        assert counts["images"] <= 3 * counts["shots"]
    covariance = results.covariance
    assert sorted(covariance["labels"]) == sorted(images.test.names)
    assert covariance["groups"][-3:] == ["new"] * 3
    for variant in (NONE, CCR):
        matrix = np.array(covariance[variant])
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-4)
        assert (np.diag(matrix) == 0).all()


def test_the_epochs_of_a_resumed_comparison_are_those_of_the_cached_times(images, folder, plan):
    cache = ResultCache(folder / "cache")
    slow = replace(plan, epochs={}, minutes=0.0)
    assert plan_with_epochs([images], slow, cache).epochs == {"coop": 1, "t2i_pal": 1}
    assert plan_with_epochs([images], replace(slow, minutes=1e6), cache).epochs == {
        "coop": 10,
        "t2i_pal": 10,
    }
