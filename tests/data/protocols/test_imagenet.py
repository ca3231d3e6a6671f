"""ImageNet and its variants: names of the classes and their folders."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from class_miniatures import CLASSES, write_imagenet

from surelabel.data.protocols import PROTOCOLS
from surelabel.errors import DataError

ENTRY = PROTOCOLS["imagenet-r"]


@pytest.fixture
def folder(tmp_path):
    write_imagenet(tmp_path, "imagenet-r")
    return tmp_path


def read(folder):
    return ENTRY.read_split(folder, ENTRY.splits[0])


def test_classes_without_images_are_labels(folder):
    with (folder / "classnames.txt").open("a") as file:
        file.write("n09 great white shark\n")
    rows = read(folder)
    assert list(rows.names) == [*CLASSES, "great white shark"]
    assert rows.targets[:, -1].sum() == 0


def test_two_classes_of_one_name_are_distinguished_by_their_folders(folder):
    with (folder / "classnames.txt").open("a") as file:
        file.write(f"n09 {CLASSES[0]}\n")
    assert list(read(folder).names) == [f"{CLASSES[0]} (n00)", *CLASSES[1:], f"{CLASSES[0]} (n09)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must contain at least one line"),
        ("n00\n", "line 1: expected a folder and a class; got 'n00'"),
        ("n00 a\n../x b\n", "line 2: expected a folder and a class"),
        ("n00 a\nn00 b\n", "folders: classes must have different names; got 'n00'"),
        ("n00 a\nn01 b\n", "n02 must be the folder of a class; got another name than those of 2"),
    ],
)
def test_damaged_names_are_described(folder, text, message):
    (folder / "classnames.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        read(folder)


def test_a_folder_without_images_is_refused(folder):
    for file in folder.glob("imagenet-r/*/*"):
        file.unlink()
    with pytest.raises(DataError, match="must contain images; got none"):
        read(folder)
