from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench.calibrated import measure
from surelabel.bench.calibrated.fits import scores
from surelabel.bench.calibrated.heads import DECAYS, HEADS, RATES, WEIGHTS, candidates
from surelabel.bench.calibrated.plan import COMPARED, FULL, SEARCHED, SENSITIVITY, SHOWN
from surelabel.bench.calibrated.published import PUBLISHED
from surelabel.bench.cells import Cells
from surelabel.metrics import METRICS


def test_every_row_has_every_metric_for_every_fit(results):
    assert len({row.title for row in results.rows}) == len(results.rows)
    for row in results.rows:
        assert set(SHOWN) <= row.values.keys()
        assert {len(values) for values in row.values.values()} == {2}


def test_all_rows_that_the_paper_has_are_measured(results):
    assert set().union(*PUBLISHED.values()) <= {row.title for row in results.rows}


def test_every_row_stands_beside_itself_with_platt(results):
    titles = {row.title for row in results.rows}
    plain = {t for t in titles if not t.endswith((" + Platt", " + temperature"))}
    assert {f"{title} + Platt" for title in plain} <= titles


def test_a_second_run_only_reads(material, folder, results, plan):
    cells = Cells(folder / "cells")
    before = sorted(folder.rglob("*"))
    again = measure(material, plan, cells)
    assert cells.computed == 0
    assert sorted(folder.rglob("*")) == before
    assert [row.values for row in again.rows] == [row.values for row in results.rows]
    assert again.retrieval == results.retrieval


class Stopped(Exception):
    """What a person does with Ctrl-C."""


def test_a_stopped_run_goes_on_where_it_was(material, plan, results, tmp_path):
    def stop(done, total):
        assert 0 < done <= total
        if done == 9:
            raise Stopped("by hand")

    with pytest.raises(Stopped, match="by hand"):
        measure(material, plan, Cells(tmp_path), progress=stop)
    kept = len(list(tmp_path.iterdir()))
    cells = Cells(tmp_path)
    again = measure(material, plan, cells)
    assert kept > 0
    assert cells.computed == len(list(tmp_path.glob("*.npz"))) - kept
    assert [row.values for row in again.rows] == [row.values for row in results.rows]


def test_progress_ends_at_its_total(material, plan, folder, results):
    seen = []
    measure(material, plan, Cells(folder / "cells"), progress=lambda *both: seen.append(both))
    assert seen[-1][0] == seen[-1][1] == len(seen)


def test_another_seed_draws_other_pictures(material, plan, results, tmp_path):
    other = measure(material, plan, Cells(tmp_path), seed=2)
    assert other.row("BCE").values != results.row("BCE").values


def test_values_are_those_of_the_heads_on_the_test_pictures(material, plan, folder, results):
    (run,) = candidates(HEADS["bce"], plan.run(96), count=1, seed=0)
    test = material.test
    for fit in range(2):
        _, found = scores(Cells(folder / "cells"), material, run, seed=fit)
        for name in SHOWN:
            given = found if name.startswith("mean_average") else expit(found)
            expected = METRICS[name](given, test.targets, test.known)
            assert results.row("BCE").values[name][fit] == pytest.approx(expected, rel=1e-12)


def test_test_labels_choose_nothing(material, plan, results, tmp_path):
    """With all test labels turned around, every head has the settings that it had."""
    test = material.test
    turned = replace(test, targets=np.where(test.known, 1 - test.targets, 0))
    budget = replace(plan, budget=3, seeds=1)
    own = measure(material, budget, Cells(tmp_path))
    other = measure(replace(material, test=turned), budget, Cells(tmp_path))
    assert [row.chosen for row in own.rows] == [row.chosen for row in other.rows]
    assert own.row("SPA").values != other.row("SPA").values


def test_every_head_has_as_many_settings_to_choose_from():
    for head in HEADS.values():
        runs = candidates(head, FULL.run(16_000), count=FULL.budget, seed=0)
        assert len({repr(run) for run in runs}) == FULL.budget


def test_each_weight_of_label_pairs_is_tried_at_the_settings_of_the_loss_alone():
    shared = FULL.run(16_000)
    alone = replace(shared, loss=HEADS["spa"].loss, learning_rate=0.03, weight_decay=0.1)
    runs = candidates(HEADS["spa-lpr"], shared, count=FULL.budget, seed=0, alone=alone)
    same = [r for r in runs if (r.learning_rate, r.weight_decay) == (0.03, 0.1)]
    assert [r.regularizer_weight for r in same[: len(WEIGHTS)]] == list(WEIGHTS)
    assert all(r.regularizer.name == "label_pair" for r in runs)


def test_without_label_pairs_the_recipe_comes_first_and_the_whole_grid_is_tried():
    shared = FULL.run(16_000)
    runs = candidates(HEADS["bce"], shared, count=FULL.budget, seed=0)
    assert (runs[0].learning_rate, runs[0].weight_decay) == (0.003, 0.01)
    tried = {(r.learning_rate, r.weight_decay) for r in runs}
    assert tried == {(rate, decay) for rate in RATES for decay in DECAYS}


def test_differences_are_of_rows_that_are_measured(results):
    assert [(c.first, c.second) for c in results.comparisons] == list(COMPARED)
    found = results.comparison("SPA", "BCE")
    one, other = results.row("SPA").mean("ace"), results.row("BCE").mean("ace")
    assert found.over_seeds["ace"].value == pytest.approx(one - other)
    first = results.row("SPA").values["ace"][0] - results.row("BCE").values["ace"][0]
    assert found.over_pictures["ace"].value == pytest.approx(first)


def test_sensitivity_at_the_papers_setting_is_spa_itself(results):
    paired = [e["value"] for e in results.sensitivity if e["setting"] == "regularizer_weight"]
    assert paired == list(WEIGHTS)
    assert len(results.sensitivity) == sum(map(len, SENSITIVITY.values())) + len(WEIGHTS)
    for entry in results.sensitivity:
        if (entry["setting"], entry["value"]) in {("zeta_neg", 5), ("k_neg", 3), ("b_neg", 1)}:
            assert entry["ace"] == pytest.approx(results.row("SPA").values["ace"][0])


def test_retrieval_and_reliability_are_there_for_what_is_shown(results):
    assert tuple(results.retrieval) == SEARCHED
    assert len(results.reliability) == 5
    assert sum(t.endswith("+ Platt") for t in results.reliability) == 1


def test_rows_near_the_best_are_marked_within_one_point(results):
    best = max(row.mean("mean_average_precision") for row in results.rows)
    for row in results.rows:
        near = row.mean("mean_average_precision") >= best - 0.01
        assert (row.title in results.near_best) == near


def test_few_pictures_get_more_passes_and_many_the_usual_ones():
    assert FULL.run(16_000).epochs == FULL.epochs
    assert FULL.run(1000).epochs * 1000 >= FULL.steps * FULL.batch
