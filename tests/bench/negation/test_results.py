import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import surelabel.bench.negation
from surelabel.bench import ComparisonTask, write_comparison
from surelabel.bench.negation import NEGATION
from surelabel.bench.negation.plan import QUERY, ROW_TITLES
from surelabel.bench.negation.query_sets import negation_query_pairs
from surelabel.bench.negation.ranking_metrics import AP, VIOLATIONS
from surelabel.cli.bench import bench


def test_the_calibrated_query_has_the_metrics_of_a_recognizer(results, splits, plan, predictions):
    p = predictions[1].probabilities.astype(float)
    y = splits.test.targets > 0
    pairs = negation_query_pairs(y, min_relevant=plan.min_relevant, min_both=plan.min_both)
    precisions, violations = [], []
    for a, b in pairs.tolist():
        order = np.argsort(-p[:, a] * (1 - p[:, b]))
        relevant = (y[:, a] & ~y[:, b])[order]
        ranks = np.flatnonzero(relevant) + 1
        precisions.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
        violations.append(y[order[:10], b].mean())
    row = next(row for row in results.encoders[0].rows if row.key == QUERY)
    assert results.n_queries[1] == len(pairs)
    assert row.metrics[AP].value == pytest.approx(np.mean(precisions))
    assert row.metrics[VIOLATIONS].value == pytest.approx(np.mean(violations))
    assert row.metrics[AP].low < row.metrics[AP].value < row.metrics[AP].high


def test_differences_are_those_of_the_values(results):
    rows = {row.key: row for row in results.encoders[0].rows}
    assert list(rows) == list(ROW_TITLES)
    for key, row in rows.items():
        assert bool(row.differences) == (key != QUERY)
        for metric, difference in row.differences.items():
            expected = row.metrics[metric].value - rows[QUERY].metrics[metric].value
            assert difference.value == pytest.approx(expected)


def test_an_interrupted_comparison_resumes(results, splits, cache, plan):
    before = cache.n_computed
    again = NEGATION.measure(ComparisonTask(splits, plan, cache))
    assert cache.n_computed == before
    assert repr(again) == repr(results)  # with undefined values


def test_another_seed_has_other_intervals_and_the_same_values(results, splits, cache, plan):
    other = NEGATION.measure(ComparisonTask(splits, plan, cache, seed=1))
    first, second = (r.encoders[0].rows[0].metrics[AP] for r in (results, other))
    assert first.value == second.value
    assert first.low != second.low


def test_the_files_of_the_comparison_are_written(splits, cache, plan):
    folder = cache.folder.parent
    page, value = write_comparison(NEGATION, [splits], plan, folder)
    assert (folder / "negation.md").read_text(encoding="utf-8") == page
    assert json.loads((folder / "negation.json").read_text(encoding="utf-8")) == value
    assert value["results"][0]["encoders"][0]["name"] == "tiny-vit"


def test_the_quick_command_prints_and_writes_the_page(cache, plan, monkeypatch):
    fast = replace(NEGATION, quick=plan)
    monkeypatch.setattr(surelabel.bench.negation, "NEGATION", fast)
    folder = cache.folder.parent
    done = CliRunner().invoke(bench, ["negation", "--quick", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    page = (folder / "negation.md").read_text(encoding="utf-8")
    assert page.startswith("# Queries with an excluded label\n")
    assert page.strip() in done.stdout
