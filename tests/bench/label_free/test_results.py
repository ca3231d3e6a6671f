import json
import warnings
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench import ComparisonTask, write_comparison
from surelabel.bench.label_free import (
    LABEL_FREE,
    label_free_plan_of_images,
    label_free_splits_of_images,
)
from surelabel.bench.label_free.method_scores import label_free_method_scores
from surelabel.bench.label_free.page import label_free_paragraphs
from surelabel.bench.label_free.plan import STUDENT_VARIANTS
from surelabel.bench.label_free.results import measure_label_free_results
from surelabel.bench.label_free.rows import (
    label_free_row_expected_count_metrics,
    label_free_row_metrics,
    label_free_row_runs,
)
from surelabel.bench.label_free.students import student_run
from surelabel.bench.result_cache import ResultCache
from surelabel.errors import DataError
from surelabel.metrics import POOLED

EACH = dict(STUDENT_VARIANTS)  # before a fixture leaves some out


def test_a_second_run_reads_what_the_first_computed(images, folder, measured, small):
    cache = ResultCache(folder / "cache")
    again = measure_label_free_results(ComparisonTask(images, small, cache))
    assert cache.n_computed == 0
    assert repr(again) == repr(measured)  # NaN equals nothing


def test_the_files_say_what_is_returned(images, folder, measured, small):
    page, value = write_comparison(LABEL_FREE, [images], small, folder)
    assert (folder / "label-free.md").read_text(encoding="utf-8") == page
    assert json.loads((folder / "label-free.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(value)
    )
    for title in (*(row.title for row in measured.rows), *(v.title for v in measured.variants)):
        assert f"| {title} |" in page


def test_values_are_those_of_the_recognizer_on_the_test_images(images, folder, measured, small):
    (run,) = label_free_row_runs(images, small, 0)["tiles"]
    one = label_free_method_scores(ResultCache(folder / "cache"), images, run, small.unlabelled)
    test, found = images.test, measured.row("tiles")
    assert found.metrics["brier_skill"] == [
        POOLED["brier_skill"](expit(one.logits), test.targets, test.known)
    ]
    ranked = POOLED["mean_average_precision"](one.test, test.targets, test.known)
    assert found.mean("mean_average_precision") == ranked
    assert label_free_row_metrics(one, images)["passes"] == 14


def test_a_gain_is_the_difference_to_the_best_one_pass_row(measured):
    best = measured.row(measured.best_one_pass)
    assert best.gain is None
    for row in measured.rows:
        if row is not best:
            metric = "mean_average_precision"
            apart = row.metrics[metric][0] - best.metrics[metric][0]
            assert row.gain[0] == pytest.approx(apart)


def test_crops_and_students_have_one_value_a_seed(measured, small):
    counts = {row.title: len(row.metrics["ece"]) for row in measured.rows}
    assert counts.pop("cut and sew") == small.student_seeds
    assert counts.pop("crops, M = 1") == small.crop_seeds
    assert set(counts.values()) == {1}
    assert [len(variant.student_map) for variant in measured.variants] == [small.student_seeds] * 2


def test_other_seeds_draw_other_crops(measured):
    first, second = measured.row("crops, M = 1").metrics["log_loss"]
    assert first != second


def test_differences_of_students_are_paired_over_seeds(measured):
    usual, changed = measured.variants
    assert usual.difference is None
    assert changed.difference.value == pytest.approx(
        mean(np.subtract(changed.student_map, usual.student_map))
    )


def test_no_label_of_the_archive_reaches_a_method_without_labels(images, measured, tmp_path, small):
    turned = replace(
        images.train, targets=1 - images.train.targets
    )  # all wrong: only the probe may notice
    other = replace(images, train=turned)
    wanted = label_free_row_runs(images, small, 0)
    for title in ("zero-shot", "tiles"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = label_free_method_scores(
                ResultCache(tmp_path), other, wanted[title][0], small.unlabelled
            )
        found = label_free_row_metrics(one, other)
        assert found["log_loss"] == pytest.approx(measured.row(title).metrics["log_loss"][0])


@pytest.mark.parametrize("title", EACH)
def test_each_student_differs_from_the_usual_one_as_it_says(title, images, small):
    usual, changed = (student_run(images, changed, small, 3) for changed in ({}, EACH[title]))
    assert (changed == usual) == (title == "default")
    for part in EACH[title]:
        changed.entry(part)


def test_as_many_labels_are_shown_as_are_expected():
    p = np.array([[0.9, 0.6], [0.4, 0.1]])
    found = label_free_row_expected_count_metrics(p, np.array([[1, 0], [1, 0]]))
    assert found["expected_labels"] == pytest.approx(1.0)
    assert found["true_labels"] == 1.0
    assert found["f1"] == pytest.approx(2 * 1 / (2 + 2))  # 0.9 and 0.6 are shown
    assert found["best_f1"] == pytest.approx(2 * 2 / (3 + 2))  # 0.4 as well


def test_a_damaged_cache_file_is_named(images, tmp_path, fewer_rows, small):
    (run,) = label_free_row_runs(images, small, 0)["zero-shot"]
    label_free_method_scores(ResultCache(tmp_path), images, run, small.unlabelled)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"half of a file")
    with pytest.raises(DataError, match=rf"{file.name} is damaged"):
        label_free_method_scores(ResultCache(tmp_path), images, run, small.unlabelled)


def test_without_known_main_objects_their_recall_is_left_out(images, measured, small):
    columns, text = " main (%) | others (%) |", "the recall of the main objects"
    page = "\n".join(label_free_paragraphs(measured))
    assert columns in page
    assert text in page
    rows = tuple(
        replace(row, metrics=row.metrics | {"recall_of_main": [np.nan]}) for row in measured.rows
    )
    page = "\n".join(label_free_paragraphs(replace(measured, rows=rows)))
    assert columns not in page
    assert text not in page
    assert "for main objects" not in page


def test_images_of_a_dataset_have_no_main_objects_and_all_are_used(images, small):
    without = label_free_splits_of_images(images)
    assert without.main_columns.tolist() == [-1] * len(images.test)
    assert (without.name, without.encoder) == (images.name, images.encoder)
    plan = label_free_plan_of_images(small, images)
    assert (plan.unlabelled, plan.validation, plan.test) == (12, 12, 6)
    assert (plan.probe_images, plan.student_images) == (12, 12)
    assert plan.student_epochs == small.student_epochs
