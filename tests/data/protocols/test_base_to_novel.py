"""Datasets of CoOp: order of the classes, and damaged lists."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from class_miniatures import CLASSES, write_class_json, write_fgvc_aircraft

from surelabel.data.protocols import PROTOCOLS
from surelabel.errors import DataError

PETS, AIRCRAFT = PROTOCOLS["oxford-pets"], PROTOCOLS["fgvc-aircraft"]
FILE = "split_zhou_OxfordPets.json"
ENTRY = ["a.jpg", 0, "cat"]


def read(protocol, folder, split="test"):
    return protocol.read_split(folder, protocol.split(split))


def test_classes_are_in_the_order_of_their_numbers_in_each_split(tmp_path):
    write_class_json(tmp_path, "OxfordPets", "images")
    for split in ("train", "val", "test"):
        assert list(read(PETS, tmp_path, split).names) == CLASSES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "must be a JSON object with the list test"),
        ({"train": []}, "must be a JSON object with the list test"),
        ({"test": [], "train": 3}, "train must be a list of images"),
        ({"test": [["a.jpg", 0]]}, "test, entry 0: expected the path"),
        ({"test": [["a.jpg", "0", "cat"]]}, "test, entry 0: expected the path"),
        ({"test": [["a.jpg", True, "cat"]]}, "test, entry 0: expected the path"),
        ({"test": [[1, 0, "cat"]]}, "test, entry 0: expected the path"),
        ({"test": [ENTRY, ["../a.jpg", 0, "cat"]]}, "test, entry 1: an image must have"),
        ({"test": [ENTRY, ["/a.jpg", 0, "cat"]]}, "test, entry 1: an image must have"),
        ({"test": [ENTRY], "train": [["b.jpg", 0, "dog"]]}, "the class 0 must have one name"),
        ({"test": [ENTRY, ["b.jpg", 1, "cat"]]}, "classes must have different names; got 'cat'"),
        ({"test": [["a.jpg", 0, " "]]}, "classes must have different names; got ' '"),
        ({"test": []}, "classes must have different names; got no class"),
        ({"test": [ENTRY, ENTRY]}, r"'images/a\.jpg' in rows 0 and 1"),
    ],
)
def test_damaged_lists_are_described(tmp_path, content, message):
    (tmp_path / FILE).write_text(json.dumps(content))
    with pytest.raises(DataError, match=message) as error:
        read(PETS, tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 unknown", "line 1: expected an image and a variant"),
        ("1", "line 1: expected an image and a variant"),
        (f"../1 {CLASSES[0]}", "line 1: expected an image and a variant"),
        ("", "must contain at least one line"),
    ],
)
def test_damaged_lines_of_aircraft_are_named(tmp_path, line, message):
    write_fgvc_aircraft(tmp_path)
    (tmp_path / "images_variant_test.txt").write_text(line + "\n")
    with pytest.raises(DataError, match=f"images_variant_test.txt.*{message}"):
        read(AIRCRAFT, tmp_path)


def test_there_are_eleven_datasets_with_base_and_novel_classes():
    with_rule = [
        name
        for name, entry in PROTOCOLS.items()
        if any("base" in note for note in entry.notes) and entry.metrics == {"accuracy": {}}
    ]
    assert len(with_rule) == 11
