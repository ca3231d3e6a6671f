"""index.json: what is in it comes back, and what cannot be in it is refused by name."""

import json
from dataclasses import replace

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.records import Predictions, SkippedImage
from surelabel.retrieval import Index
from surelabel.retrieval.index_manifest import (
    IndexManifest,
    IndexRecognizer,
    check_index_manifest_folder,
    load_index_manifest,
    next_shard_number_in_index_manifest,
    save_index_manifest,
)
from surelabel.retrieval.shard_layout import COLUMN_LISTS


@pytest.fixture
def listed(tmp_path):
    """The index.json of an index of three images, one of them removed."""
    logits = np.zeros((3, 2), np.float32)
    paths = ["/a.jpg", "/b.jpg", "/c.jpg"]
    skipped = [SkippedImage("/odd\udcff.jpg", "truncated")]
    made = Predictions(paths, ["x", "y"], logits, logits, "by hand", skipped=skipped)
    Index.create(tmp_path, made).remove(["/b.jpg"])
    return tmp_path / "index.json"


def test_what_is_saved_is_loaded(tmp_path):
    contents = IndexManifest(
        ("ä", "b"), "model", "by hand", "/root", skipped={"/odd\udcff.jpg": "truncated"}
    )
    save_index_manifest(tmp_path, contents)
    assert load_index_manifest(tmp_path) == contents
    assert "recognizer" not in json.loads((tmp_path / "index.json").read_text())
    for calibration in (None, {"calibrator": "platt", "state": {"a": [0.1]}, "about": "ä"}):
        named = IndexRecognizer("tiny-vit", ("ä|å", "b"), calibration, "abc", "def")
        save_index_manifest(tmp_path, replace(contents, recognizer=named))
        assert load_index_manifest(tmp_path).recognizer == named


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": [1, 2]}, "names must be"),
        ({"names": ["x", "x"]}, "names must be a list of distinct, non-empty strings"),
        ({"names": "xy"}, "names must be"),
        ({"model": None}, "model, calibration and revision must be strings"),
        ({"revision": 7}, "model, calibration and revision must be strings"),
        ({"skipped": []}, "skipped must map each path"),
        ({"skipped": {"/a.jpg": 1}}, "skipped must map each path"),
        ({"shards": {}}, "shards must be a list"),
        ({"shards": [3]}, "not subscriptable"),
        ({"version": None}, "not supported"),
        ({"version": 1.5}, "version must be a whole number"),
        ({"root": "images"}, "root must be an absolute path"),
        ({"root": None}, "root must be an absolute path"),
        ({"recognizer": "tiny-vit"}, "string indices"),
        ({"recognizer": {"model": "tiny-vit"}}, "'labels' is missing"),
        ({"recognizer": {"model": 3, "labels": ["x", "y"]}}, "recognizer must have the name"),
        ({"recognizer": {"model": "tiny-vit", "labels": "xy"}}, "recognizer must have the name"),
        ({"recognizer": {"model": "tiny-vit", "labels": ["x"]}}, "recognizer must have 2 labels"),
        (
            {"recognizer": {"model": "tiny-vit", "labels": ["x", "y"], "calibration": "platt"}},
            "calibration of the recognizer must be an object",
        ),
        (
            {"recognizer": {"model": "tiny-vit", "labels": ["x", "y"], "encoder": 3}},
            "encoder and scores of the recognizer must be strings",
        ),
    ],
)
def test_a_field_of_another_kind_is_refused(listed, change, message):
    listed.write_text(json.dumps(json.loads(listed.read_text()) | change))
    with pytest.raises(DataError, match=rf"index\.json is damaged: .*{message}.*build the index"):
        Index.open(listed.parent)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"removed": [999]}, "removed must be distinct row numbers below 3"),
        ({"removed": [1, 1]}, "distinct row numbers"),
        ({"removed": [-1]}, "removed must be"),
        ({"removed": ["1"]}, "removed must be"),
        ({"removed": {}}, "removed must be"),
        ({"rows": 2.5}, "whole numbers"),
        ({"number": -1}, "whole numbers"),
        ({"files": []}, "has no attribute"),
        ({"features_checksum": 7}, "features_checksum must be a number if the shard has features"),
        ({"files": {"../secret": 3}}, "the files of shard 0 must be"),
        ({"step_columns": [0]}, "the files of shard 0 must be .*steps-000.parquet"),
        ({"unscored_columns": [2]}, "columns of shards must be below 2"),
        ({"unscored_columns": [1, 0]}, "columns must be increasing"),
        ({"score_columns": [-1]}, "columns must be increasing whole numbers"),
        ({"step_columns": "0"}, "columns must be increasing whole numbers"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(listed, change, message):
    fields = json.loads(listed.read_text())
    fields["shards"][0] |= change
    listed.write_text(json.dumps(fields))
    with pytest.raises(DataError, match=rf"index\.json is damaged: .*{message}.*build the index"):
        Index.open(listed.parent)


def test_a_shard_listed_twice_is_refused(listed):
    fields = json.loads(listed.read_text())
    listed.write_text(json.dumps(fields | {"shards": fields["shards"] * 2}))
    with pytest.raises(DataError, match="listed twice"):
        load_index_manifest(listed.parent)


def test_a_missing_field_is_named(listed):
    fields = json.loads(listed.read_text())
    del fields["shards"][0]["removed"]
    listed.write_text(json.dumps(fields))
    with pytest.raises(DataError, match="damaged: 'removed' is missing"):
        load_index_manifest(listed.parent)


def test_an_index_of_an_unreleased_version_is_not_called_damaged(listed):
    fields = json.loads(listed.read_text())
    for name in COLUMN_LISTS:
        del fields["shards"][0][name]
    listed.write_text(json.dumps(fields))
    with pytest.raises(DataError, match=r"version wrote this index\. Delete the folder, and build"):
        Index.open(listed.parent)


def test_numbers_of_leftovers_are_not_used_again(listed):
    assert next_shard_number_in_index_manifest(listed.parent) == 1
    (listed.parent / ".logits-041.npy.77.new").write_text("half")
    assert next_shard_number_in_index_manifest(listed.parent) == 42
    assert next_shard_number_in_index_manifest(listed.parent / "nowhere") == 0


def test_only_an_empty_folder_or_an_index_is_usable(listed):
    check_index_manifest_folder(listed.parent)
    check_index_manifest_folder(listed.parent / "nowhere")
    (listed.parent / "logits.npy").write_text("mine")
    with pytest.raises(DataError, match=r"got .*logits\.npy\. Choose another folder"):
        check_index_manifest_folder(listed.parent)


def test_a_manifest_that_cannot_be_read_is_not_called_damaged(tmp_path):
    with pytest.raises(DataError, match=r"index\.json cannot be read: File name too long\. Check"):
        Index.open(tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"version": ' + "1" * 5000 + "}", "a number with more than 4300 digits"),
        ('{"version": 1, "version": 2}', "the key 'version' twice"),
    ],
)
def test_a_hostile_manifest_is_refused_on_one_line(listed, text, reason):
    listed.write_text(text)
    with pytest.raises(DataError, match=rf"index\.json is damaged: .*{reason}\. Restore"):
        Index.open(listed.parent)
