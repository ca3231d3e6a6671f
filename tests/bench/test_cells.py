import json
from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench import Material
from surelabel.bench.calibrated.fits import scores
from surelabel.bench.cells import Cells, digest
from surelabel.config import Choice, Run
from surelabel.errors import DataError
from surelabel.records import LabelledFeatures

RUN = Run(method=Choice("linear"), epochs=1, batch=32)


def test_a_head_is_fitted_once_and_then_read(material, tmp_path):
    first, again = Cells(tmp_path), Cells(tmp_path)
    fitted, read = (scores(cells, material, RUN, seed=0) for cells in (first, again))
    assert (first.computed, again.computed) == (1, 0)
    np.testing.assert_array_equal(fitted[0], read[0])
    np.testing.assert_array_equal(fitted[1], read[1])


def test_each_seed_sees_other_training_pictures(material, tmp_path):
    cells = Cells(tmp_path)
    one, other = (scores(cells, material, RUN, seed=seed)[1] for seed in (0, 1))
    assert cells.computed == 2
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("part", ["train", "validation", "test"])
@pytest.mark.parametrize("what", ["features", "targets", "known"])
def test_other_data_never_meet_the_same_cell(material, part, what):
    own = getattr(material, part)
    given = {"features": own.features, "targets": own.targets, "known": own.known}
    given[what] = given[what].copy()
    if what == "features":
        given[what][0, 0] += 1
    elif what == "targets":
        row, column = np.argwhere(own.known)[0]
        given[what][row, column] = 1 - given[what][row, column]
    else:
        row, column = np.argwhere(own.known)[0]
        given[what][row, column] = False
    other = replace(material, **{part: LabelledFeatures(names=own.names, **given)})
    assert other.identity != material.identity


def test_a_name_does_not_make_other_data(material):
    assert replace(material, name="another name").identity == material.identity


def test_a_stopped_fit_leaves_nothing_behind(material, tmp_path):
    stopped = replace(RUN, loss=Choice("binary"), learning_rate=1.0)
    broken = Material("broken", "features:9", material.train, material.validation, material.test)
    with pytest.raises(Exception, match="9"):
        scores(Cells(tmp_path), broken, stopped, seed=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"half of a file", b"PK\x03\x04 cut off"])
def test_a_damaged_cell_is_named(material, tmp_path, content):
    scores(Cells(tmp_path), material, RUN, seed=0)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    with pytest.raises(DataError, match=rf"{file.name} is damaged .*Remove it and run again\."):
        scores(Cells(tmp_path), material, RUN, seed=0)


def test_a_cell_of_another_shape_is_damaged(material, tmp_path):
    scores(Cells(tmp_path), material, RUN, seed=0)
    (file,) = tmp_path.iterdir()
    np.savez(file, validation=np.zeros((2, 2)), test=np.zeros((2, 2)))
    with pytest.raises(DataError, match="arrays of another shape"):
        scores(Cells(tmp_path), material, RUN, seed=0)


def test_a_cell_that_needs_pickle_is_not_opened(material, tmp_path):
    scores(Cells(tmp_path), material, RUN, seed=0)
    (file,) = tmp_path.iterdir()
    anything = np.array([{}], dtype=object)
    np.savez(file, validation=anything, test=anything)
    with pytest.raises(DataError, match="is damaged"):
        scores(Cells(tmp_path), material, RUN, seed=0)


def test_a_value_is_worked_out_once(tmp_path):
    called = []
    for _ in range(2):
        found = Cells(tmp_path).value("key", 1, otherwise=lambda: called.append(1) or {"a": 0.5})
    assert (found, called) == ({"a": 0.5}, [1])


def test_a_damaged_value_is_named(tmp_path):
    Cells(tmp_path).value("key", otherwise=lambda: [1.0])
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps([1.0])[:-1])
    with pytest.raises(DataError, match=rf"{file.name} is damaged"):
        Cells(tmp_path).value("key", otherwise=lambda: [1.0])


def test_a_folder_that_is_a_file_is_refused(material, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        scores(Cells(tmp_path / "file"), material, RUN, seed=0)


def test_a_digest_tells_arrays_apart():
    one = np.arange(6.0)
    assert digest(one) != digest(one + 1)
    assert digest(one, one) != digest(one)
