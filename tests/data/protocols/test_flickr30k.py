"""Flickr30k: images are in the folder of the official archive."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_miniatures import MINIATURES

from surelabel.data.protocols import PROTOCOLS
from surelabel.errors import DataError

PROTOCOL = PROTOCOLS["flickr30k"]


def test_images_have_the_folder_of_the_archive_and_the_ids_of_the_file(tmp_path):
    MINIATURES["flickr30k"](tmp_path)
    rows = PROTOCOL.read_split(tmp_path, PROTOCOL.split("test"))
    assert all(image.startswith("flickr30k-images/") for image in rows.images)
    content = json.loads((tmp_path / "dataset_flickr30k.json").read_text())
    entries = [entry for entry in content["images"] if entry["split"] == "test"]
    assert list(rows.image_ids) == [entry["imgid"] for entry in entries]


def test_the_file_of_coco_is_refused(tmp_path):
    MINIATURES["coco-captions"](tmp_path)
    (tmp_path / "dataset_coco.json").rename(tmp_path / "dataset_flickr30k.json")
    with pytest.raises(
        DataError, match=r"filepath of images\[0\] must be one of ''; got 'val2014'"
    ):
        PROTOCOL.read_split(tmp_path, PROTOCOL.split("test"))
