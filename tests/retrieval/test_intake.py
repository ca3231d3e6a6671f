"""What may enter an index."""

from dataclasses import replace

import numpy as np
import pytest

from surelabel.data.cache import content_hash
from surelabel.errors import InputError, NotFitted
from surelabel.records import Predictions, Skipped
from surelabel.retrieval import Index
from surelabel.retrieval.intake import batch_of, new_contents, skipped_of


@pytest.fixture
def made(tmp_path):
    """Predictions of two files, with what these held."""
    paths = [str(tmp_path / name) for name in ("a.jpg", "b.jpg")]
    for path in paths:
        with open(path, "w") as file:
            file.write(path)
    logits = np.array([[1, -2], [3, 0]], np.float32)
    hashes = [content_hash(path) for path in paths]
    return Predictions(paths, ["x", "y"], 2 * logits, logits, "by hand", "model", hashes=hashes)


def test_rows_are_label_major(made):
    batch = batch_of(made)
    assert batch.table["path"].to_pylist() == made.paths
    assert batch.logits.tolist() == [[1, 3], [-2, 0]]
    assert batch.scores.tolist() == [[2, 6], [-4, 0]]


def test_a_file_edited_between_prediction_and_index_is_stale(made, tmp_path):
    with open(made.paths[1], "w") as file:
        file.write("edited")
    index = Index.create(tmp_path / "index", made)
    assert index.stale() == [made.paths[1]]
    fresh = [content_hash(path) for path in made.paths]
    index.add(replace(made, hashes=fresh))
    assert index.stale() == []


def test_skipped_pictures_keep_their_whole_path(monkeypatch, tmp_path, made):
    monkeypatch.chdir(tmp_path)
    skipped = [Skipped("odd.jpg", "truncated")]
    assert skipped_of(replace(made, skipped=skipped)) == {str(tmp_path / "odd.jpg"): "truncated"}


def test_two_spellings_of_one_path_are_one_picture(made):
    twice = [made.paths[0], made.paths[0].replace("a.jpg", "./a.jpg")]
    with pytest.raises(InputError, match=r"a\.jpg' comes twice: drop one"):
        batch_of(replace(made, paths=twice))


def test_contents_need_calibration_and_names(made):
    assert new_contents(made).calibration == "by hand"
    with pytest.raises(NotFitted, match="needs calibrated log-odds"):
        new_contents(replace(made, calibration=None))
    with pytest.raises(InputError, match="each once and none empty"):
        new_contents(replace(made, names=["x", "x"]))


def test_hashes_are_one_a_path(made):
    with pytest.raises(InputError, match=r"hashes must be one a path, 2\. Got 1"):
        replace(made, hashes=["0"])
