"""COCO Captions: the ids of the relevance files of ECCV Caption and CxC are checked."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_miniatures import MINIATURES

from surelabel.data import read_relevance, relevant_captions
from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.data.protocols.coco_captions import RELEVANCE_FILES
from surelabel.errors import DataError
from surelabel.records import Pairs

PROTOCOL = PROTOCOLS["coco-captions"]
TEST = PROTOCOL.split("test")


@pytest.fixture
def folder(tmp_path):
    MINIATURES["coco-captions"](tmp_path)
    return tmp_path


def test_the_files_of_relevance_are_optional(folder):
    for file in (folder / "eccv_caption").iterdir():
        file.unlink()
    assert not PROTOCOL.read_split(folder, TEST).defects


def test_the_relevance_of_images_is_found_by_the_ids(folder):
    rows = check_protocol_folder(PROTOCOL, folder, subset=True).splits[-1].rows
    pairs = Pairs(rows.images, rows.captions, rows.image_rows, rows.image_ids, rows.caption_ids)
    relevance = read_relevance(folder / RELEVANCE_FILES["eccv"][0])
    relevant = relevant_captions(pairs, relevance)
    assert relevant.query_rows.tolist() == [0, 1, 2]
    assert [found.tolist() for found in relevant.relevant_rows] == [
        [5 * row + number for number in range(5)] for row in range(3)
    ]
    assert relevant.n_unmatched_items == 0


@pytest.mark.parametrize("name", RELEVANCE_FILES)
def test_ids_of_other_images_or_captions_are_a_defect(folder, name):
    file = folder / RELEVANCE_FILES[name][0]
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "7": [1, 2]}))
    (defect,) = PROTOCOL.read_split(folder, TEST).defects
    assert defect.startswith(f"eccv_caption/{name}_image_to_caption.json has 3 ids that the test")
    assert defect.endswith("such as 1; they are ignored.")


def test_unknown_ids_of_the_published_file_are_a_known_defect(folder):
    file = folder / RELEVANCE_FILES["eccv"][0]
    content = json.loads(file.read_text())
    next(iter(content.values())).extend([144675, 467259])
    file.write_text(json.dumps(content))
    check = check_protocol_folder(PROTOCOL, folder)
    (known,) = check.known_defects
    assert known.startswith("test: eccv_caption/eccv_image_to_caption.json has 2 ids that")
    assert not any("eccv" in problem for problem in check.problems)
    other = folder / RELEVANCE_FILES["cxc"][0]
    other.write_text(file.read_text())
    (defect,) = PROTOCOL.read_split(folder, TEST).defects
    assert "cxc_image_to_caption.json has 2 ids" in defect


def test_exchanged_files_of_relevance_are_a_defect(folder):
    images, captions = (folder / path for path in RELEVANCE_FILES["cxc"])
    images.write_text(captions.read_text())
    (defect,) = PROTOCOL.read_split(folder, TEST).defects
    assert "cxc_image_to_caption.json has 18 ids" in defect


@pytest.mark.parametrize("content", ["[1]", "{}", '{"a": [1]}', '{"400": []}', '{"400": ["x"]}'])
def test_an_invalid_file_of_relevance_is_named(folder, content):
    file = folder / RELEVANCE_FILES["cxc"][1]
    file.write_text(content)
    with pytest.raises(DataError, match=r"cxc_caption_to_image\.json"):
        PROTOCOL.read_split(folder, TEST)


def test_relevance_is_not_read_for_other_splits(folder):
    (folder / RELEVANCE_FILES["cxc"][1]).write_text("[1]")
    assert len(PROTOCOL.read_split(folder, PROTOCOL.split("val")).images) == 2
