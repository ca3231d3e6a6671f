"""Image sets of Pascal VOC: difficult objects, equal lists, invalid lines."""

import pytest

from surelabel.data.protocols import ProtocolSplit
from surelabel.data.protocols.definition.voc_image_sets import (
    IMAGE_SETS,
    LABELS,
    read_voc_split,
    voc_files,
)
from surelabel.errors import DataError

SPLIT = ProtocolSplit("test", "test")


@pytest.fixture
def sets(tmp_path):
    """Return the folder of the lists of two images."""
    folder = tmp_path / IMAGE_SETS
    folder.mkdir(parents=True)
    (folder / "test.txt").write_text("000001\n000002\n")
    for label in LABELS:
        (folder / f"{label}_test.txt").write_text("000001 -1\n000002 -1\n")
    return folder


def test_difficult_objects_are_negative_and_empty_lines_are_ignored(sets, tmp_path):
    (sets / "dog_test.txt").write_text("000001  0\n\n000002  1\n")
    rows = read_voc_split(tmp_path, SPLIT)
    assert list(rows.images) == ["JPEGImages/000001.jpg", "JPEGImages/000002.jpg"]
    assert rows.targets[:, LABELS.index("dog")].tolist() == [0, 1]
    assert rows.targets.sum() == 1


def test_the_files_are_a_list_for_each_split_and_the_images():
    paths = [file.path for file in voc_files("archive", ("train", "val"))]
    assert paths == ["ImageSets/Main/train.txt", "ImageSets/Main/val.txt", "JPEGImages"]


INVALID = {
    "three columns": ("dog_test.txt", "000001 1 1\n000002 1\n", "line 1: expected an image and 1"),
    "no target": ("dog_test.txt", "000001 1\n000002\n", "line 2: expected an image and 1"),
    "unknown target": ("dog_test.txt", "000001 2\n000002 1\n", "line 1: expected an image and 1"),
    "target of text": ("dog_test.txt", "000001 yes\n000002 1\n", "line 1: expected"),
    "other order": ("dog_test.txt", "000002 1\n000001 1\n", "in the same order"),
    "image too few": ("dog_test.txt", "000001 1\n", "in the same order"),
    "image too many": ("dog_test.txt", "000001 1\n000002 1\n000003 1\n", "in the same order"),
    "target in the list of images": (
        "test.txt",
        "000001 1\n000002\n",
        "line 1: expected an image;",
    ),
    "folder in the name": ("test.txt", "000001\n../000002\n", "line 2: expected an image;"),
    "other separator": ("test.txt", "x\\000001\n000002\n", "line 1: expected an image;"),
    "hidden image": ("test.txt", ".000001\n000002\n", "line 1: expected an image;"),
    "Latin-1": ("dog_test.txt", b"000001 1\n00000\xe9 1\n", "line 2: expected text in UTF-8"),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_list_is_named_with_its_line(sets, tmp_path, case):
    name, content, message = INVALID[case]
    content = content if isinstance(content, bytes) else content.encode()
    (sets / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        read_voc_split(tmp_path, SPLIT)
    assert str(sets / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_repeated_image_is_named(sets, tmp_path):
    for file in sets.iterdir():
        file.write_text(file.read_text() * 2)
    with pytest.raises(DataError, match=r"got 'JPEGImages/000001\.jpg' in rows 0 and 2"):
        read_voc_split(tmp_path, SPLIT)


def test_a_missing_list_of_a_label_is_named(sets, tmp_path):
    (sets / "cat_test.txt").unlink()
    with pytest.raises(DataError, match=r"cat_test\.txt cannot be read"):
        read_voc_split(tmp_path, SPLIT)
