"""Captions with the splits of Karpathy and Li: parts, ids, five captions, invalid files."""

import json
import sys
from copy import deepcopy
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from caption_miniatures import PARTS, karpathy_entries
from coco_miniatures import write_json

from surelabel.data.protocols.definition.karpathy_captions import read_karpathy_split
from surelabel.errors import DataError

FOLDERS = {"val2014": "images"}
ENTRIES = karpathy_entries(
    PARTS, lambda row: {"filename": f"{row}.jpg", "filepath": "val2014"}, "cocoid"
)


def read(tmp_path, content, split="test"):
    write_json(tmp_path / "dataset.json", content)
    return read_karpathy_split(tmp_path / "dataset.json", split, folders=FOLDERS, id_key="cocoid")


@pytest.mark.parametrize(
    ("split", "rows"), [("train", [1, 2, 4, 6, 9]), ("val", [3, 7]), ("test", [0, 5, 8])]
)
def test_a_split_has_its_parts_with_ids_and_five_captions_of_each_image(tmp_path, split, rows):
    read_rows = read(tmp_path, {"images": ENTRIES}, split)
    assert list(read_rows.images) == [f"images/{row}.jpg" for row in rows]
    assert list(read_rows.image_ids) == [ENTRIES[row]["cocoid"] for row in rows]
    assert list(read_rows.image_rows) == [r for r in range(len(rows)) for _ in range(5)]
    assert list(read_rows.caption_ids) == [
        10 * ENTRIES[row]["cocoid"] + number for row in rows for number in range(5)
    ]
    assert read_rows.captions[3] == f"Scene {rows[0]} has view 3."
    assert read_rows.targets.shape == (len(rows), 0)


def test_an_image_with_fewer_captions_keeps_them(tmp_path):
    entries = deepcopy(ENTRIES)
    del entries[0]["sentences"][2:]
    rows = read(tmp_path, {"images": entries})
    assert rows.image_rows[:3] == [0, 0, 1]


def test_selected_images_keep_their_ids(tmp_path):
    rows = read(tmp_path, {"images": ENTRIES}).take([0, 2])
    assert rows.image_ids == [ENTRIES[0]["cocoid"], ENTRIES[8]["cocoid"]]
    assert rows.caption_ids[5] == 10 * ENTRIES[8]["cocoid"]
    assert len(rows.caption_ids) == len(rows.captions) == 10


def changed(**values):
    """Return content in which some fields of the image in row 5, which is in test, differ."""
    entries = deepcopy(ENTRIES)
    entries[5].update(values)
    return {"images": entries}


def sentences(*values):
    return changed(sentences=list(values))


S = {"raw": "a dog", "sentid": 3}
INVALID = {
    "list": (ENTRIES, "with a list of images"),
    "no images": ({"dataset": "coco"}, "with a list of images"),
    "images by name": ({"images": {}}, "with a list of images"),
    "empty images": ({"images": []}, "must have images of the split 'test'; got none among 0"),
    "no image of the split": ({"images": ENTRIES[1:5]}, "got none among 4"),
    "image as text": ({"images": ["a.jpg"]}, r"images\[0\] must be an object"),
    "unknown split": (changed(split="dev"), r"split of images\[5\] must be one of .*'dev'"),
    "no split": (changed(split=None), r"split of images\[5\] must be one of"),
    "file in a folder": (changed(filename="x/a.jpg"), r"filename of images\[5\]"),
    "file of another type": (changed(filename=5), r"filename of images\[5\] .*got 5"),
    "empty file name": (changed(filename=""), r"filename of images\[5\]"),
    "unknown folder": (changed(filepath="test2014"), r"filepath of images\[5\] .*'val2014'"),
    "no sentences": (changed(sentences=[]), r"sentences of images\[5\]"),
    "sentences as text": (changed(sentences="a dog"), r"sentences of images\[5\]"),
    "sentence as text": (sentences(S, "a dog"), r"sentences\[1\] of images\[5\] must be an object"),
    "empty caption": (sentences({**S, "raw": " "}), r"sentences\[0\] of images\[5\].*a caption"),
    "no caption id": (sentences({"raw": "a dog"}), r"sentid of sentences\[0\] of images\[5\]"),
    "caption id of text": (sentences({**S, "sentid": "3"}), "must be an integer >= 0; got '3'"),
    "image id of another type": (changed(cocoid=True), r"cocoid of images\[5\] .*got True"),
    "negative image id": (changed(cocoid=-1), r"cocoid of images\[5\] .*got -1"),
    "repeated image id": (changed(cocoid=ENTRIES[0]["cocoid"]), "cocoid must be unique in a split"),
    "repeated caption id": (sentences(S, S), "sentid must be unique in a split; the id 3"),
    "repeated image": (changed(filename="0.jpg"), "got 'images/0.jpg' in rows 0 and 1"),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_file_is_named_with_its_element(case, tmp_path):
    content, message = INVALID[case]
    with pytest.raises(DataError, match=message) as error:
        read(tmp_path, content)
    assert "\n" not in str(error.value)
    if case != "repeated image":
        assert "dataset.json" in str(error.value)


def test_truncated_text_is_named(tmp_path):
    file = tmp_path / "dataset.json"
    file.write_text(json.dumps({"images": ENTRIES})[:-5])
    with pytest.raises(DataError, match=r"dataset\.json must be a file of captions in JSON"):
        read_karpathy_split(file, "test", folders=FOLDERS, id_key="cocoid")
