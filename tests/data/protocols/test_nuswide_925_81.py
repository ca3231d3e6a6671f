"""NUS-WIDE with seen tags and unseen concepts."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from nuswide_miniatures import NOT_IN_TAGS, write_nuswide_925_81, write_nuswide_lines

from surelabel.data.protocols import PROTOCOLS, check_protocol_folder
from surelabel.errors import DataError

PROTOCOL = PROTOCOLS["nuswide-925-81"]
TAG_FILE, TRAIN_TAGS = "NUS_WID_Tags/TagList1k.txt", "NUS_WID_Tags/Train_Tags1k.dat"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nuswide") / "data"
    write_nuswide_925_81(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "data")


def tags_of(folder):
    return (folder / TAG_FILE).read_text().split()


def test_the_groups_are_the_tags_without_concepts_and_the_concepts(folder):
    seen, unseen = PROTOCOL.groups["seen"], PROTOCOL.groups["unseen"]
    assert (len(seen), len(unseen)) == (925, 81)
    assert PROTOCOL.labels == (*sorted(seen), *sorted(unseen))
    assert {*tags_of(folder)} == {*seen} | ({*unseen} - NOT_IN_TAGS)
    assert unseen == PROTOCOLS["nuswide-81"].labels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tags: tags[:-1], r"line 1: expected 999 values.* got 1,000 values"),
        (lambda tags: [*tags[:-1], tags[0]], r"TagList1k\.txt, line 1000.*also on line 1"),
        (lambda tags: [*tags[:-1], ""], r"line 1: expected 999 values"),
        (lambda tags: [*tags[:-2], "", tags[0]], r"TagList1k\.txt, line 999"),
        (lambda tags: ["a/b", *tags[1:]], r"TagList1k\.txt, line 1"),
        (lambda tags: ["qwerty", *tags[1:]], "or other tags. Restore"),
    ],
)
def test_another_list_of_tags_is_refused(folder, change, message):
    write_nuswide_lines(folder / TAG_FILE, change(tags_of(folder)))
    with pytest.raises(DataError, match=message):
        check_protocol_folder(PROTOCOL, folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "5 lines and 6 images"),
        (lambda lines: [*lines, lines[0]], "7 lines and 6 images"),
        (lambda lines: ["2" + lines[0][1:], *lines[1:]], "line 1: .*'2'"),
        (lambda lines: [lines[0][2:], *lines[1:]], "line 1: expected 1,000 values.*999"),
        (lambda lines: [lines[0].replace("0", "x", 1), *lines[1:]], "line 1: .*'x'"),
        (lambda lines: [], "Train_Tags1k.dat must have one line for each image"),
    ],
)
def test_damaged_tag_matrices_are_named(folder, change, message):
    lines = (folder / TRAIN_TAGS).read_text().splitlines()
    write_nuswide_lines(folder / TRAIN_TAGS, change(lines))
    with pytest.raises(DataError, match=message) as error:
        check_protocol_folder(PROTOCOL, folder)
    assert TRAIN_TAGS in str(error.value)
