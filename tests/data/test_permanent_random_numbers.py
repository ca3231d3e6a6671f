import os

import numpy as np
from scipy import stats

from surelabel.data.permanent_random_numbers import (
    permanent_random_numbers,
    row_identifiers,
)
from surelabel.records import LabelledFeatures, LabelledImages

NAMES = [f"img/{number}.jpg" for number in range(2000)]


def test_the_numbers_are_uniform_and_those_of_two_keys_are_independent():
    one, two = (permanent_random_numbers(NAMES, key) for key in ("seed 0", "seed 1"))
    assert stats.kstest(one, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.1
    assert one.min() >= 0
    assert one.max() < 1


def test_a_number_depends_only_on_its_own_row():
    numbers = permanent_random_numbers(NAMES, "seed 0")
    assert permanent_random_numbers(NAMES[7:5:-1], "seed 0").tolist() == numbers[[7, 6]].tolist()


def test_identifiers_of_images_survive_a_move_of_their_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = ["birds/a.jpg", os.path.join(tmp_path, "birds", "a.jpg"), "/elsewhere/birds/a.jpg"]
    images = LabelledImages(paths, ["x"], np.zeros((3, 1)))
    assert set(row_identifiers(images)) == {"birds/a.jpg"}
    assert row_identifiers(LabelledFeatures(np.eye(2), [], np.zeros((2, 0)))) == ["row 0", "row 1"]
