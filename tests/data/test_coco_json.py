from pathlib import Path

import pytest

from surelabel.data.coco_json import coco_values_by_id, read_coco_json
from surelabel.errors import DataError


def test_values_are_texts_by_id():
    entries = [{"id": 2, "name": "dog"}, {"id": "x", "name": 5}]
    assert coco_values_by_id(Path("a"), "categories", entries, "name") == {2: "dog", "x": "5"}


def test_a_repeated_id_is_refused():
    entries = [{"id": 2, "name": "dog"}, {"id": 2, "name": "cat"}]
    with pytest.raises(
        DataError, match="ids of categories in a must be unique; the id 2 is repeated"
    ):
        coco_values_by_id(Path("a"), "categories", entries, "name")


def test_a_file_is_one_object(tmp_path):
    (tmp_path / "a.json").write_text('{"images": []}')
    assert read_coco_json(tmp_path / "a.json") == {"images": []}
    (tmp_path / "a.json").write_text("3")
    with pytest.raises(DataError, match="one JSON object; got a value of type int"):
        read_coco_json(tmp_path / "a.json")
