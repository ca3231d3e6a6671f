import math
import random
from pathlib import Path

import numpy as np
import pytest

from surelabel.data.labels.resolution.correction_history import (
    CorrectionHistory,
    absolute_correction_path,
    target_array,
)
from surelabel.data.labels.resolution.correction_rows import CorrectionRow

A, B = "/photos/a.jpg", "/photos/b.jpg"


def row(path, label, target, chosen_by="query", event="", probability=math.nan):
    return CorrectionRow(
        path, label, target, chosen_by=chosen_by, inclusion_probability=probability, event=event
    )


def sampling(path, probability):
    return row(path, "", math.nan, "random", "e1", probability)


def check(path, targets, event="", probability=0.5):
    return [
        row(path, label, target, "random", event, probability) for label, target in targets.items()
    ]


def test_the_last_row_of_an_image_and_label_holds():
    history = CorrectionHistory().extended([row(A, "dog", 1.0), row(B, "dog", 1.0)])
    history = history.extended([row(A, "dog", 0.0), row(A, "cat", 1.0)])
    assert history.targets == {A: {"dog": 0.0, "cat": 1.0}, B: {"dog": 1.0}}
    assert history.names == ["dog", "cat"]


def test_an_undone_event_has_no_effect_wherever_its_rows_are():
    rows = [
        row(A, "dog", 1.0, event="one"),
        row(A, "dog", 0.0, event="two"),
        row(B, "cat", 1.0, event="two"),
        row(A, "dog", 1.0, event="undo two"),
        row(B, "cat", math.nan, event="undo two"),
    ]
    history = CorrectionHistory.of_rows(rows, Path("/"))
    assert history.targets == {A: {"dog": 1.0}}
    assert (history.names, list(history.chosen_by)) == (["dog"], [A])


def test_an_undo_keeps_the_later_target_of_another_event():
    rows = [row(A, "dog", 1.0, event="one"), row(A, "dog", 0.0, event="two")]
    history = CorrectionHistory().extended(rows)
    history = history.extended([row(A, "dog", 0.0, event="undo one")])
    assert history.targets == {A: {"dog": 0.0}}


def test_a_history_in_parts_equals_the_history_of_all_rows():
    rng = random.Random(0)
    rows = [sampling(A, 0.25)]
    for number in range(60):
        path, event = rng.choice([A, B]), f"event {number}"
        if number % 7 == 6:
            rows.append(row(path, "dog", 1.0, event=f"undo event {rng.randrange(number)}"))
        elif number % 5 == 4:
            rows += check(path, {"dog": 1.0, "cat": float(number % 2)}, event)
        else:
            rows.append(row(path, rng.choice(["dog", "cat"]), float(number % 2), event=event))
    whole = CorrectionHistory().extended(rows)
    parts = CorrectionHistory()
    for one in rows:
        parts = parts.extended([one])
    assert parts == whole


def test_corrections_before_and_after_a_check_do_not_change_the_targets_of_the_sample():
    history = CorrectionHistory().extended(
        [
            row(A, "dog", 1.0),
            sampling(A, 0.5),
            *check(A, {"dog": 0.0, "cat": 1.0}),
            row(A, "cat", 0.0),
        ]
    )
    assert history.targets[A] == {"dog": 0.0, "cat": 0.0}
    assert history.sample_targets[A] == {"dog": 0.0, "cat": 1.0}


def test_only_a_check_of_all_labels_of_a_sampled_image_is_complete():
    history = CorrectionHistory().extended(
        [
            sampling(A, 0.5),
            sampling(B, 0.5),
            row(B, "dog", 1.0),
            row(B, "cat", 1.0),
            *check(A, {"dog": 0.0, "cat": math.nan}, "check"),
        ]
    )
    assert history.complete_paths(["dog", "cat"]) == [A]
    assert history.complete_paths(["dog", "cow"]) == []
    undone = history.extended([row(A, "dog", math.nan, event="undo check")])
    assert undone.complete_paths(["dog"]) == []
    assert list(undone.sampled) == [A, B]


def test_all_images_of_a_sample_have_the_probability_of_its_last_extension():
    history = CorrectionHistory().extended([sampling(A, 0.25), *check(A, {"dog": 1.0}, "", 0.25)])
    history = history.extended([sampling(B, 0.5)])
    assert history.sampled == {A: 0.5, B: 0.5}


def test_relative_paths_refer_to_the_folder_of_the_file():
    history = CorrectionHistory.of_rows([row("./a.jpg", "dog", 1.0)], Path("/photos"))
    assert list(history.targets) == [A]
    assert absolute_correction_path(Path("/x"), "s3://bucket/a.jpg") == "s3://bucket/a.jpg"


@pytest.mark.parametrize("names", [["dog"], ["cow", "dog"]])
def test_targets_of_other_labels_and_images_are_unknown(names):
    array = target_array({A: {"dog": 1.0, "cat": 0.0}}, [B, A], names)
    expected = np.full((2, len(names)), np.nan)
    expected[1, names.index("dog")] = 1
    np.testing.assert_array_equal(array, expected)
