import numpy as np

from surelabel.cluster.part_writer import (
    WORK_FOLDER,
    count_repeated_images,
    name_of_batch,
    start_attempt,
)


def test_batches_with_the_same_first_row_have_different_names():
    names = {name_of_batch(np.array([3, last])) for last in range(4, 40)}
    assert len(names) == 36
    assert all(name.startswith("000000000003-") for name in names)


def test_batches_of_an_earlier_attempt_are_counted_once(tmp_path):
    assert count_repeated_images(tmp_path) == 0
    start_attempt(tmp_path)
    for name in ("000000000000-aaaaaaaa-64", "000000000064-bbbbbbbb-10"):
        (tmp_path / WORK_FOLDER / "started" / name).touch()
    assert count_repeated_images(tmp_path) == 0
    for _ in range(2):
        start_attempt(tmp_path)
        assert count_repeated_images(tmp_path) == 74
    (tmp_path / WORK_FOLDER / "started" / "000000000000-aaaaaaaa-64").touch()
    start_attempt(tmp_path)
    assert count_repeated_images(tmp_path) == 74 + 64


def test_each_attempt_has_another_token(tmp_path):
    assert start_attempt(tmp_path) != start_attempt(tmp_path)
