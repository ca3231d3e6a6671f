"""What may enter an index."""

from dataclasses import replace

import numpy as np
import pytest

from surelabel.errors import InputError, NotFitted
from surelabel.features.cache import content_hash_for_cache
from surelabel.records import Predictions, SkippedImage
from surelabel.retrieval import Index
from surelabel.retrieval.index_root import IndexRoot
from surelabel.retrieval.ingestion import (
    check_label_names_for_ingestion,
    empty_manifest_for_ingestion,
    predictions_to_ingestion_rows,
    skipped_reasons_of_ingestion,
)


@pytest.fixture
def made(tmp_path):
    """Predictions of two files, with what these held."""
    paths = [str(tmp_path / name) for name in ("a.jpg", "b.jpg")]
    for path in paths:
        with open(path, "w") as file:
            file.write(path)
    logits = np.array([[1, -2], [3, 0]], np.float32)
    hashes = [content_hash_for_cache(path) for path in paths]
    return Predictions(paths, ["x", "y"], 2 * logits, logits, "by hand", "model", hashes=hashes)


def test_rows_are_label_major(made):
    batch = predictions_to_ingestion_rows(made, IndexRoot.at("/"))
    assert batch.file_states["path"].to_pylist() == [path.removeprefix("/") for path in made.paths]
    assert [batch.read_label(j)[0].tolist() for j in (0, 1)] == [[1, 3], [-2, 0]]
    assert [batch.read_label(j)[1].tolist() for j in (0, 1)] == [[2, 6], [-4, 0]]


def test_a_file_edited_between_prediction_and_index_is_stale(made, tmp_path):
    with open(made.paths[1], "w") as file:
        file.write("edited")
    index = Index.create(tmp_path / "index", made)
    assert index.changed_paths() == [made.paths[1]]
    fresh = [content_hash_for_cache(path) for path in made.paths]
    index.add(replace(made, hashes=fresh))
    assert index.changed_paths() == []


def test_skipped_images_keep_their_whole_path(monkeypatch, tmp_path, made):
    monkeypatch.chdir(tmp_path)
    skipped = [SkippedImage("odd.jpg", "truncated")]
    assert skipped_reasons_of_ingestion(replace(made, skipped=skipped)) == {
        str(tmp_path / "odd.jpg"): "truncated"
    }


def test_two_spellings_of_one_path_are_one_image(made):
    twice = [made.paths[0], made.paths[0].replace("a.jpg", "./a.jpg")]
    with pytest.raises(InputError, match=r"a\.jpg' more than once\. Remove"):
        predictions_to_ingestion_rows(replace(made, paths=twice), IndexRoot.at("/"))


def test_contents_need_calibration_and_names(made):
    assert empty_manifest_for_ingestion(made, "/").calibration == "by hand"
    with pytest.raises(NotFitted, match="needs calibrated log-odds"):
        empty_manifest_for_ingestion(replace(made, calibration=None), "/")
    with pytest.raises(InputError, match="must be distinct and not empty"):
        empty_manifest_for_ingestion(replace(made, names=["x", "x"]), "/")
    with pytest.raises(InputError, match="needs at least one label; got no label name"):
        check_label_names_for_ingestion([])


def test_hashes_are_one_a_path(made):
    with pytest.raises(InputError, match=r"hashes must have one entry per path, 2; got 1"):
        replace(made, hashes=["0"])
