from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench import ComparisonTask
from surelabel.bench.calibrated.fits import calibrated_fit_scores
from surelabel.bench.calibrated.heads import (
    HEADS,
    LEARNING_RATES,
    PAIR_WEIGHTS,
    WEIGHT_DECAYS,
    candidate_head_runs,
)
from surelabel.bench.calibrated.plan import (
    COMPARED_ROWS,
    FULL,
    RETRIEVAL_ROWS,
    SENSITIVITY_SETTINGS,
    TABLE_METRICS,
)
from surelabel.bench.calibrated.published import PUBLISHED
from surelabel.bench.calibrated.results import measure_calibration_results
from surelabel.bench.result_cache import ResultCache
from surelabel.metrics import METRICS


def test_every_row_has_every_metric_for_every_fit(results):
    assert len({row.title for row in results.rows}) == len(results.rows)
    for row in results.rows:
        assert set(TABLE_METRICS) <= row.metrics.keys()
        assert {len(values) for values in row.metrics.values()} == {2}


def test_all_rows_that_the_paper_has_are_measured(results):
    assert set().union(*PUBLISHED.values()) <= {row.title for row in results.rows}


def test_every_row_stands_beside_itself_with_platt(results):
    titles = {row.title for row in results.rows}
    plain = {t for t in titles if not t.endswith((" + Platt", " + temperature"))}
    assert {f"{title} + Platt" for title in plain} <= titles


def test_a_second_run_only_reads(dataset, folder, results, plan):
    cache = ResultCache(folder / "cache")
    before = sorted(folder.rglob("*"))
    again = measure_calibration_results(ComparisonTask(dataset, plan, cache))
    assert cache.n_computed == 0
    assert sorted(folder.rglob("*")) == before
    assert [row.metrics for row in again.rows] == [row.metrics for row in results.rows]
    assert again.retrieval == results.retrieval


class Stopped(Exception):
    """Stands for an interruption with Ctrl-C."""


def test_an_interrupted_run_resumes(dataset, plan, results, tmp_path):
    one_fit = replace(plan, seeds=1)

    def stop(done, total):
        assert 0 < done <= total
        if done == 9:
            raise Stopped("by hand")

    with pytest.raises(Stopped, match="by hand"):
        measure_calibration_results(
            ComparisonTask(dataset, one_fit, ResultCache(tmp_path), progress=stop)
        )
    kept = len(list(tmp_path.iterdir()))
    cache = ResultCache(tmp_path)
    again = measure_calibration_results(ComparisonTask(dataset, one_fit, cache))
    assert kept > 0
    assert cache.n_computed == len(list(tmp_path.glob("*.npz"))) - kept
    assert [row.metrics for row in again.rows] == [
        {name: values[:1] for name, values in row.metrics.items()} for row in results.rows
    ]


def test_progress_ends_at_its_total(dataset, plan, folder, results):
    seen = []
    cache = ResultCache(folder / "cache")
    measure_calibration_results(
        ComparisonTask(dataset, plan, cache, progress=lambda *both: seen.append(both))
    )
    assert seen[-1][0] == seen[-1][1] == len(seen)


def test_another_seed_draws_other_images(dataset, plan, results, tmp_path):
    one_fit = replace(plan, seeds=1)
    other = measure_calibration_results(
        ComparisonTask(dataset, one_fit, ResultCache(tmp_path), seed=2)
    )
    for name in TABLE_METRICS:
        (value,) = other.row("BCE").metrics[name]
        assert value not in results.row("BCE").metrics[name]


def test_values_are_those_of_the_heads_on_the_test_images(dataset, plan, folder, results):
    (run,) = candidate_head_runs(HEADS["bce"], plan.shared_run(96), count=1, seed=0)
    test = dataset.test
    for fit in range(2):
        _, found = calibrated_fit_scores(ResultCache(folder / "cache"), dataset, run, seed=fit)
        for name in TABLE_METRICS:
            given = found if name.startswith("mean_average") else expit(found)
            expected = METRICS[name](given, test.targets, test.known)
            assert results.row("BCE").metrics[name][fit] == pytest.approx(expected, rel=1e-12)


def test_test_labels_choose_nothing(dataset, plan, results, tmp_path):
    """With all test labels turned around, every head has the settings that it had."""
    test = dataset.test
    turned = replace(test, targets=np.where(test.known, 1 - test.targets, 0))
    budget = replace(plan, settings_per_head=2, seeds=1)
    cache = ResultCache(tmp_path)
    own = measure_calibration_results(ComparisonTask(dataset, budget, cache))
    other = measure_calibration_results(
        ComparisonTask(replace(dataset, test=turned), budget, cache)
    )
    assert [row.settings for row in own.rows] == [row.settings for row in other.rows]
    assert own.row("SPA").metrics != other.row("SPA").metrics


def test_every_head_has_as_many_settings_to_choose_from():
    for head in HEADS.values():
        runs = candidate_head_runs(
            head, FULL.shared_run(16_000), count=FULL.settings_per_head, seed=0
        )
        assert len({repr(run) for run in runs}) == FULL.settings_per_head


def test_each_weight_of_label_pairs_is_tried_at_the_settings_of_the_loss_alone():
    shared = FULL.shared_run(16_000)
    alone = replace(shared, loss=HEADS["spa"].loss, learning_rate=0.03, weight_decay=0.1)
    runs = candidate_head_runs(
        HEADS["spa-lpr"], shared, count=FULL.settings_per_head, seed=0, selected_without_pairs=alone
    )
    same = [r for r in runs if (r.learning_rate, r.weight_decay) == (0.03, 0.1)]
    assert [r.regularizer_weight for r in same[: len(PAIR_WEIGHTS)]] == list(PAIR_WEIGHTS)
    assert all(r.regularizer.name == "label_pair" for r in runs)


def test_without_label_pairs_the_recipe_comes_first_and_the_whole_grid_is_tried():
    shared = FULL.shared_run(16_000)
    runs = candidate_head_runs(HEADS["bce"], shared, count=FULL.settings_per_head, seed=0)
    assert (runs[0].learning_rate, runs[0].weight_decay) == (0.003, 0.01)
    tried = {(r.learning_rate, r.weight_decay) for r in runs}
    assert tried == {(rate, decay) for rate in LEARNING_RATES for decay in WEIGHT_DECAYS}


def test_differences_are_of_rows_that_are_measured(results):
    assert [(c.first, c.second) for c in results.comparisons] == list(COMPARED_ROWS)
    found = results.comparison("SPA", "BCE")
    one, other = results.row("SPA").mean("ace"), results.row("BCE").mean("ace")
    assert found.over_seeds["ace"].value == pytest.approx(one - other)
    first = results.row("SPA").metrics["ace"][0] - results.row("BCE").metrics["ace"][0]
    assert found.over_images["ace"].value == pytest.approx(first)


def test_sensitivity_at_the_papers_setting_is_spa_itself(results):
    paired = [e["value"] for e in results.sensitivity if e["setting"] == "regularizer_weight"]
    assert paired == list(PAIR_WEIGHTS)
    assert len(results.sensitivity) == sum(map(len, SENSITIVITY_SETTINGS.values())) + len(
        PAIR_WEIGHTS
    )
    for entry in results.sensitivity:
        if (entry["setting"], entry["value"]) in {("zeta_neg", 5), ("k_neg", 3), ("b_neg", 1)}:
            assert entry["ace"] == pytest.approx(results.row("SPA").metrics["ace"][0])


def test_retrieval_and_reliability_are_there_for_what_is_shown(results):
    assert tuple(results.retrieval) == RETRIEVAL_ROWS
    assert len(results.reliability) == 5
    assert sum(t.endswith("+ Platt") for t in results.reliability) == 1


def test_rows_near_the_best_are_marked_within_one_point(results):
    best = max(row.mean("mean_average_precision") for row in results.rows)
    for row in results.rows:
        near = row.mean("mean_average_precision") >= best - 0.01
        assert (row.title in results.near_best) == near


def test_few_images_get_more_passes_and_many_the_usual_ones():
    assert FULL.shared_run(16_000).epochs == FULL.epochs
    assert FULL.shared_run(1000).epochs * 1000 >= FULL.min_steps * FULL.batch_size
