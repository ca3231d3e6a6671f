"""Images with captions are found by the form of the source."""

import json
import shutil

import numpy as np
import pytest

from surelabel.cli.input_options import load_pairs_from_input_options
from surelabel.data import collection
from surelabel.errors import DataError, UnknownName
from surelabel.records import PairFeatures, Pairs


def test_a_split_of_a_collection_gives_pairs_with_relevance():
    pairs = load_pairs_from_input_options("scenes-80:validation")
    assert isinstance(pairs, Pairs)
    assert pairs.captions == collection("scenes-80", split="validation", captions=True).captions
    assert len(pairs.relevance) > len(pairs)


def test_a_caption_file_is_read_with_its_images_root(tmp_path):
    (tmp_path / "images").mkdir()
    shutil.copy(collection("scenes-80", split="test").paths[0], tmp_path / "images" / "a.jpg")
    (tmp_path / "x.json").write_text(
        json.dumps(
            {
                "images": [{"id": 4, "file_name": "a.jpg"}],
                "annotations": [{"id": 9, "image_id": 4, "caption": "a lion"}],
            }
        )
    )
    pairs = load_pairs_from_input_options(str(tmp_path / "x.json"), str(tmp_path / "images"))
    assert (pairs.captions, pairs.image_ids, pairs.caption_ids) == (["a lion"], [4], [9])
    with pytest.raises(
        DataError, match=r"1 of \d files are missing, such as '.*a\.jpg'.*another images_root"
    ):
        load_pairs_from_input_options(str(tmp_path / "x.json"))


def test_an_archive_gives_vectors(tmp_path):
    rows = np.array([0, 1])
    np.savez(
        tmp_path / "p.npz", image_features=np.eye(2), text_features=np.eye(2, 3), image_rows=rows
    )
    assert isinstance(load_pairs_from_input_options(str(tmp_path / "p.npz")), PairFeatures)


def test_a_split_that_does_not_exist_and_a_collection_without_split_are_refused():
    with pytest.raises(UnknownName, match=r"split of scenes-80 must be .*; got 'dev'"):
        load_pairs_from_input_options("scenes-80:dev")
    with pytest.raises(
        DataError, match=r"needs a split; got scenes-80\. Give one of scenes-80:train"
    ):
        load_pairs_from_input_options("scenes-80")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("lost.json", None, r"lost\.json does not exist. Give the path of a file with captions"),
        ("lost.npz", None, r"lost\.npz cannot be read: No such file"),
        ("x.npz", "no archive", "must be an archive of pairs"),
        (
            "x.txt",
            "a dog\na cat\n",
            "Pairs must have an image for each caption; .* captions without",
        ),
        ("x.csv", "path,dog\na.jpg,1\n", "the first line must be image,caption"),
        ("x.jsonl", '{"path": "a.jpg", "labels": []}\n', "expected .* as in scenes"),
        ("x.json", '{"images": [], "annotations": []}', "at least one caption; got none"),
        ("x.json", '{"images": [], "annotations": [{"category_id": 1}]}', "'image_id'"),
    ],
)
def test_sources_without_pairs_are_refused_on_one_line(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        load_pairs_from_input_options(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_a_folder_of_images_has_no_pairs(tmp_path):
    with pytest.raises(DataError, match="expected a regular file; got a folder"):
        load_pairs_from_input_options(str(tmp_path))
