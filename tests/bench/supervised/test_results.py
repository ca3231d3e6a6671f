import json
from statistics import mean

import pytest

from surelabel.bench import ComparisonTask, ResultCache, write_comparison
from surelabel.bench.supervised import SUPERVISED
from surelabel.bench.supervised.metrics import MAP


def row(results, method, n_images):
    (found,) = (r for r in results.rows_of_method(method) if r.n_images == n_images)
    return found


def test_every_method_has_a_row_for_each_number_of_images(results):
    plan = results.plan
    assert [(r.n_images, r.method) for r in results.rows] == [
        (count, method) for count in plan.image_counts for method in plan.methods
    ]
    for r in results.rows:
        n_seeds = 1 if (r.method, r.n_images) == ("ml_decoder", 12) else 2
        assert all(len(values) == n_seeds for values in r.metrics.values())


def test_the_ranking_of_label_free_methods_does_not_depend_on_labels(results):
    values = [value for r in results.rows_of_method("tiles") for value in r.metrics[MAP]]
    assert len(set(values)) == 1
    first, second = row(results, "tiles", 6).metrics["log_loss"]
    assert first != second  # calibrated on other images


def test_differences_are_paired_over_seeds_and_images(results):
    studied = ["multiple_instance_tiles", "ml_decoder"]
    assert [(d.n_images, d.method) for d in results.differences] == [
        (count, method) for count in (6, 12) for method in studied for _ in range(2)
    ]
    for difference in results.differences:
        of_method, of_reference = (
            row(results, name, difference.n_images).metrics
            for name in (difference.method, difference.reference)
        )
        for metric, found in difference.metrics.items():
            n_seeds = len(of_method[metric])  # one for ml_decoder with 12 images
            expected = mean(of_method[metric]) - mean(of_reference[metric][:n_seeds])
            assert found.value == pytest.approx(expected)
            assert found.over_images.value == pytest.approx(expected)
    best = [d.reference for d in results.differences if d.is_best_label_free]
    label_free = ("zero_shot", "tiles")
    expected = [max(label_free, key=lambda m: row(results, m, n).mean(MAP)) for n in (6, 12)]
    assert best == [name for name in expected for _ in studied]


def test_demands_follow_from_the_rows(results):
    for demand in results.demands["tiles"]:
        reached = row(results, "tiles", 6).mean(MAP) >= demand.level
        assert demand.count == (6 if reached else float("inf"))


def test_a_second_run_reads_the_cached_results_and_writes_the_same_files(images, folder, results):
    cache = ResultCache(folder / "cache")
    again = SUPERVISED.measure(ComparisonTask(images, results.plan, cache))
    assert cache.n_computed == 0
    assert repr(again) == repr(results)  # intervals of one seed are NaN
    page, value = write_comparison(SUPERVISED, [images], results.plan, folder)
    assert (folder / "supervised.md").read_text(encoding="utf-8") == page
    assert json.loads((folder / "supervised.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(value)
    )
    assert (folder / "supervised.png").read_bytes().startswith(b"\x89PNG")
