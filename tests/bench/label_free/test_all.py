import json
import warnings
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench.cells import Cells
from surelabel.bench.label_free.all import measure, measure_all
from surelabel.bench.label_free.plan import STUDENTS
from surelabel.bench.label_free.rows import runs, shown_without_labels, values
from surelabel.bench.label_free.scored import scored
from surelabel.bench.label_free.students import run_of
from surelabel.errors import DataError
from surelabel.metrics import POOLED

EACH = dict(STUDENTS)  # before a fixture leaves some out


def test_a_second_run_reads_what_the_first_computed(pictures, folder, measured, small):
    cells = Cells(folder / "cells")
    again = measure(pictures, small, cells)
    assert cells.computed == 0
    assert repr(again) == repr(measured)  # NaN equals nothing


def test_the_files_say_what_is_returned(pictures, folder, measured, small):
    page, value = measure_all([pictures], small, folder)
    assert (folder / "label-free.md").read_text(encoding="utf-8") == page
    assert json.loads((folder / "label-free.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(value)
    )
    for title in (*(row.title for row in measured.rows), *(v.title for v in measured.variants)):
        assert f"| {title} |" in page


def test_values_are_those_of_the_recognizer_on_the_test_pictures(pictures, folder, measured, small):
    (run,) = runs(pictures, small, 0)["tiles"]
    one = scored(Cells(folder / "cells"), pictures, run, small.unlabelled)
    test, found = pictures.test, measured.row("tiles")
    assert found.values["brier_skill"] == [
        POOLED["brier_skill"](expit(one.logits), test.targets, test.known)
    ]
    ranked = POOLED["mean_average_precision"](one.test, test.targets, test.known)
    assert found.mean("mean_average_precision") == ranked
    assert values(one, pictures)["passes"] == 14


def test_a_gain_is_the_difference_to_the_best_one_pass_row(measured):
    best = measured.row(measured.best)
    assert best.gain is None
    for row in measured.rows:
        if row is not best:
            metric = "mean_average_precision"
            apart = row.values[metric][0] - best.values[metric][0]
            assert row.gain[0] == pytest.approx(apart)


def test_crops_and_students_have_one_value_a_seed(measured, small):
    counts = {row.title: len(row.values["ece"]) for row in measured.rows}
    assert counts.pop("cut and sew") == small.students
    assert counts.pop("crops, M = 1") == small.seeds
    assert set(counts.values()) == {1}
    assert [len(variant.of_student) for variant in measured.variants] == [small.students] * 2


def test_other_seeds_draw_other_crops(measured):
    first, second = measured.row("crops, M = 1").values["log_loss"]
    assert first != second


def test_differences_of_students_are_paired_over_seeds(measured):
    usual, changed = measured.variants
    assert usual.difference is None
    assert changed.difference.value == pytest.approx(
        mean(np.subtract(changed.of_student, usual.of_student))
    )


def test_no_label_of_the_archive_reaches_a_method_without_labels(
    pictures, measured, tmp_path, small
):
    turned = replace(
        pictures.train, targets=1 - pictures.train.targets
    )  # all wrong: only the probe may notice
    other = replace(pictures, train=turned)
    wanted = runs(pictures, small, 0)
    for title in ("zero-shot", "tiles"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = scored(Cells(tmp_path), other, wanted[title][0], small.unlabelled)
        found = values(one, other)
        assert found["log_loss"] == pytest.approx(measured.row(title).values["log_loss"][0])


@pytest.mark.parametrize("title", EACH)
def test_each_student_differs_from_the_usual_one_as_it_says(title, pictures, small):
    usual, changed = (run_of(pictures, changed, small, 3) for changed in ({}, EACH[title]))
    assert (changed == usual) == (title == "as it is")
    for part in EACH[title]:
        changed.make(part)


def test_as_many_labels_are_shown_as_are_expected():
    p = np.array([[0.9, 0.6], [0.4, 0.1]])
    found = shown_without_labels(p, np.array([[1, 0], [1, 0]]))
    assert found["labels_shown"] == pytest.approx(1.0)
    assert found["labels_there"] == 1.0
    assert found["f1"] == pytest.approx(2 * 1 / (2 + 2))  # 0.9 and 0.6 are shown
    assert found["best_f1"] == pytest.approx(2 * 2 / (3 + 2))  # 0.4 as well


def test_a_damaged_cell_is_named(pictures, tmp_path, fewer_rows, small):
    (run,) = runs(pictures, small, 0)["zero-shot"]
    scored(Cells(tmp_path), pictures, run, small.unlabelled)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"half of a file")
    with pytest.raises(DataError, match=rf"{file.name} is damaged"):
        scored(Cells(tmp_path), pictures, run, small.unlabelled)
