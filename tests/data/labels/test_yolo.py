"""YOLO datasets in the layout of Ultralytics, Roboflow and CVAT."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.labels import yolo
from surelabel.data.labels.resolution.yaml_files import MAX_DEPTH, YAML_LIMIT
from surelabel.errors import DataError, InputError

BOX = "0.5 0.5 0.2 0.3"
DESCRIPTION = """\
# Example of a dataset with 2 splits
path: . # dataset root dir
train: images/train # train images (relative to 'path')
val: images/val
test: # test images (optional)

# Classes
names:
  0: dog
  1: hot dog
  2: no

download: |
  import os
  names: [x]
"""
LABELS = {
    "images/train/a.jpg": f"1 {BOX}\n1 0.1 0.2 0.1 0.1\n",
    "images/train/sub/b.png": f"0 {BOX}\r\n2 {BOX}",
    "images/train/c.JPG": "\n",
    "images/train/d.jpg": None,
    "images/val/e.jpg": f"0 {BOX}\n",
}


def write_dataset(root, labels=LABELS, description=DESCRIPTION):
    """Write images without content, and their labels beside them or in the folder ``labels``."""
    for image, text in labels.items():
        file = root / image
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        if text is not None:
            label_file = root / image.replace("images/", "labels/")
            label_file.parent.mkdir(parents=True, exist_ok=True)
            label_file.with_suffix(".txt").write_bytes(text.encode())
    (root / "data.yaml").write_text(description, encoding="utf-8")
    return root


def by_image(labelled, root):
    """Return the targets of each image, with -1 for unknown targets."""
    targets = np.where(labelled.known, labelled.targets, -1).astype(int).tolist()
    return {
        os.path.relpath(path, root): row for path, row in zip(labelled.paths, targets, strict=True)
    }


TRAIN = {
    "images/train/a.jpg": [0, 1, 0],
    "images/train/sub/b.png": [1, 0, 1],
    "images/train/c.JPG": [0, 0, 0],
    "images/train/d.jpg": [-1, -1, -1],
}


def test_classes_with_an_object_are_positive_and_only_missing_files_are_unknown(tmp_path):
    write_dataset(tmp_path)
    labelled = yolo.read(tmp_path / "data.yaml", split="train")
    assert labelled.names == ["dog", "hot dog", "no"]
    assert by_image(labelled, tmp_path) == TRAIN
    assert labelled.reading == (
        "YOLO dataset, split train; 1 image with an empty .txt file has no label; 1 image without "
        "a .txt file is unknown"
    )
    assert by_image(yolo.read(tmp_path, split="val"), tmp_path) == {"images/val/e.jpg": [1, 0, 0]}


def test_a_missing_file_is_negative_only_if_that_is_stated(tmp_path):
    write_dataset(tmp_path)
    labelled = yolo.read(tmp_path, split="train", missing="negative")
    assert by_image(labelled, tmp_path) == TRAIN | {"images/train/d.jpg": [0, 0, 0]}
    assert labelled.reading.endswith("1 image without a .txt file is negative")
    same = yolo.read(tmp_path, split="train", missing="unknown")
    assert by_image(same, tmp_path) == TRAIN
    with pytest.raises(InputError, match="missing must be one of negative, unknown; got 'empty'"):
        yolo.read(tmp_path, split="train", missing="empty")


def test_a_dataset_with_several_splits_needs_a_choice(tmp_path):
    write_dataset(tmp_path)
    message = r"data\.yaml must have one split.*got the splits train, val\. Add --split train "
    with pytest.raises(DataError, match=message):
        yolo.read(tmp_path)
    with pytest.raises(InputError, match=r"one of the splits of .*, train, val; got 'test'"):
        yolo.read(tmp_path, split="test")
    write_dataset(tmp_path, description="names: [dog, cat, fox]\nvalidation: images/val\n")
    assert yolo.read(tmp_path).paths == [str(tmp_path / "images/val/e.jpg")]


def test_names_select_and_order_the_classes(tmp_path):
    write_dataset(tmp_path)
    labelled = yolo.read(tmp_path, split="val", names=["no", "owl", "hot dog", "dog"])
    assert by_image(labelled, tmp_path) == {"images/val/e.jpg": [0, -1, 0, 1]}
    with pytest.raises(DataError, match="which has 1 label; got 2 other labels: 'hot dog', 'no'"):
        yolo.read(tmp_path, split="val", names=["dog"])


@pytest.mark.parametrize(
    "numbers",
    [
        BOX,
        "0.1 0.1 0.2 0.1 0.2 0.2",  # triangle
        "0.1 0.1 0.2 0.1 0.2 0.2 0.1 0.2",  # oriented box
        f"{BOX} 0.5 0.5 2",  # one keypoint with its visibility
        f"{BOX} 0.5 0.5 0.6 0.6",  # two keypoints
        f"{BOX} 0 0 0 0.5 0.5 1",
    ],
)
def test_boxes_polygons_and_keypoints_are_objects(tmp_path, numbers):
    write_dataset(tmp_path, {"images/val/e.jpg": f"2.0\t{numbers} \n"})
    labelled = yolo.read(tmp_path, split="val")
    assert by_image(labelled, tmp_path) == {"images/val/e.jpg": [0, 0, 1]}


ROBOFLOW = """\
train: ../train/images
val: ../valid/images

nc: 2
names: ['dog', "cat"]

roboflow:
  workspace: demo
  version: 1
"""


def test_the_layout_of_roboflow_is_read(tmp_path):
    labels = {"train/images/a_jpg.rf.1.jpg": "1 0.5 0.5 0.1 0.1", "valid/images/b.jpg": ""}
    root = write_dataset(tmp_path / "download", labels, ROBOFLOW)
    expected = {"train/images/a_jpg.rf.1.jpg": [0, 1]}
    assert by_image(yolo.read(root, split="train"), root) == expected
    (tmp_path / "train/images").mkdir(parents=True)
    with pytest.raises(DataError, match=r"line 1: .*'\.\./train/images', which exists with and wi"):
        yolo.read(root, split="train")


def test_lists_of_images_are_relative_to_the_list(tmp_path):
    description = "path: ./\ntrain: [train.txt, more/list.txt, images/val]\nnames: [dog, cat, fox]"
    write_dataset(tmp_path, description=description)
    absolute = tmp_path / "images/train/c.JPG"
    (tmp_path / "train.txt").write_text(f"images/train/a.jpg\n\n{absolute}\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more/list.txt").write_text("./../images/train/sub/b.png\r\n")
    labelled = yolo.read(tmp_path)
    images = ["train/a.jpg", "train/c.JPG", "train/sub/b.png", "val/e.jpg"]
    assert labelled.paths == [str(tmp_path / "images" / image) for image in images]
    assert labelled.targets.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 1], [1, 0, 0]]


def test_labels_without_a_folder_of_images_are_beside_the_image(tmp_path):
    description = "path: photos\nnames: [dog, cat]\ntrain: ."
    write_dataset(tmp_path, {"photos/a.jpg": f"1 {BOX}", "photos/.x/b.jpg": ""}, description)
    assert by_image(yolo.read(tmp_path), tmp_path) == {"photos/a.jpg": [0, 1]}


def test_images_root_replaces_the_path_of_the_file(tmp_path):
    write_dataset(tmp_path / "copy", description=DESCRIPTION.replace("path: .", "path: /content/x"))
    (tmp_path / "copy/data.yaml").rename(tmp_path / "data.yml")
    message = r"data\.yml, line 2: path must be the folder of the dataset; got '/content/x'"
    with pytest.raises(DataError, match=message):
        yolo.read(tmp_path, split="val")
    labelled = yolo.read(tmp_path, split="val", images_root=tmp_path / "copy")
    assert labelled.paths == [str(tmp_path / "copy/images/val/e.jpg")]
    with pytest.raises(DataError, match=r"^images_root must be the folder of the dataset; got"):
        yolo.read(tmp_path, split="val", images_root=tmp_path / "lost")


LINE = "expected a class number and the coordinates of a box"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"0 {BOX}\n3 {BOX}", r"line 2: the class number must be less than 3, .*got 3\."),
        (f"-1 {BOX}", rf"line 1: {LINE}.*got '-1"),
        (f"dog {BOX}", rf"line 1: {LINE}.*got 'dog"),
        (f"1.5 {BOX}", rf"line 1: {LINE}"),
        (f"0 {BOX}\n\n0 0.5 0.5 0.2", rf"line 3: {LINE}.*got '0 0\.5 0\.5 0\.2'"),
        (f"0 {BOX} 0.93", rf"line 1: {LINE}"),  # a prediction with its confidence
        (f"0 {BOX} 0 {BOX}", rf"line 1: {LINE}"),  # two lines in one
        ("0 0.5 0.5 x 0.3", rf"line 1: {LINE}"),
        ("0 0.5 0.5 nan 0.3", rf"line 1: {LINE}"),
        (f"0,{BOX.replace(' ', ',')}", rf"line 1: {LINE}"),
        ("<annotation>", rf"line 1: {LINE}"),
    ],
)
def test_a_damaged_label_file_is_refused_with_its_line(tmp_path, text, message):
    write_dataset(tmp_path, {"images/val/e.jpg": text})
    with pytest.raises(DataError, match=rf"labels/val/e\.txt, {message}"):
        yolo.read(tmp_path, split="val")


def test_a_label_file_that_is_not_utf_8_is_refused(tmp_path):
    write_dataset(tmp_path)
    (tmp_path / "labels/val/e.txt").write_bytes(b"0 \xff")
    with pytest.raises(DataError, match=r"e\.txt must be a YOLO label file; got: bytes that are"):
        yolo.read(tmp_path, split="val")


BOMB = "names: [dog]\ntrain: images\na: &a [x, x]\nb: [*a, *a]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"data\.yaml, line 3: expected a value without anchors and aliases; got '&a'"),
        ("names: *a\n", r"data\.yaml, line 1: .*got '\*a'"),
        ("names: !!python/object/apply:os.getcwd []\n", r"line 1: .*got the tag '.*os\.getcwd'"),
        ("a: " + "[" * 50_000, rf"line 1: lists .* must be nested at most {MAX_DEPTH} times"),
        ("names: [dog\ntrain: x\n", r"data\.yaml, line 2: expected YAML; got: .*Correct the file"),
        ("names: [dog]\n\ttrain: x\n", r"data\.yaml, line \d: expected YAML; got"),
        ("names: [dog]\x01\n", r"data\.yaml must be a YAML file in UTF-8; got: unacceptable"),
        ("names: [a]\nnames: [b]\n", r"line 2: each key .* occurs once; got 'names' again"),
        ("[a, b]: c\n", r"line 1: each key .*; got a list or mapping"),
        ("- names\n", r"must be a YAML file with one mapping.*got another value"),
        ("a: 1\n---\nb: 2\n", r"got 2 documents"),
        ("", r"got 0 documents"),
        ("train: images\nnc: 3\n", r"data\.yaml must contain the labels .*got 'train, nc' without"),
        ("names: [dog]\nnc: 1\n", r"data\.yaml must contain the images of a split"),
        ("names: dog\ntrain: x\n", r"line 1: names must be a list of labels, .*got 'dog'"),
        ("names: []\ntrain: x\n", r"line 1: names must contain at least one label"),
        ("names:\n- dog\n- ''\ntrain: x\n", r"line 3: each label must be a text .*got ''"),
        ("names:\n- dog\n- null\ntrain: x\n", r"line 3: each label .*got another value"),
        ("names:\n- dog\n- [cat]\ntrain: x\n", r"line 3: each label .*got another value"),
        ('names: ["a\\nb"]\ntrain: x\n', r"line 1: each label .*got 'a\\nb'"),
        ("names:\n- dog\n- dog\n", r"line 3: labels must be unique; .*also on line 2"),
        ("names:\n  0: dog\n  2: cat\n", r"line 3: the class numbers .* 0 to 1, .*got '2'"),
        ("names:\n  0: dog\n  00: cat\n", r"line 3: the class numbers .*got '00'"),
        ("names:\n  dog: 0\n", r"line 2: the class numbers in names .*got 'dog'"),
        ("names: [dog]\nnc: 2\ntrain: x\n", r"line 2: nc must be .*, 1; got '2'"),
        ("names: [dog]\ntrain: {a: b}\n", r"line 2: train must be a folder .*got another value"),
        ("names: [dog]\ntrain: []\n", r"line 2: train must be .*got an empty list"),
        ("names: [dog]\ntrain: x\npath: [x]\n", r"line 3: path must be .*got another value"),
        (
            "names: [dog]\ntrain: lost\n",
            r"line 2: expected a folder .*got 'lost', which does not",
        ),
        ("names: [dog]\ntrain: data.yaml\n", r"line 2: expected a folder .*got 'data\.yaml'"),
        ("names: [dog]\ntrain: ..\n", r"line 2: expected a path inside .*got '\.\.'"),
        ("names: [dog]\ntrain: images/../../x\n", r"line 2: expected a path inside .*got 'images/"),
        ("names: [dog]\ntrain: /etc\n", r"line 2: expected a path inside .*got '/etc'"),
        ("names: [dog]\ntrain: labels\n", r"the split train must contain images; got none"),
    ],
)
def test_a_damaged_description_is_refused_with_its_line(tmp_path, text, message):
    write_dataset(tmp_path, {"images/val/e.jpg": f"0 {BOX}"}, text)
    with pytest.raises(DataError, match=message) as caught:
        yolo.read(tmp_path / "data.yaml")
    assert "\n" not in str(caught.value)
    assert "data.yaml" in str(caught.value)


def test_a_description_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "data.yaml").write_bytes(b"#" * (YAML_LIMIT + 1))
    with pytest.raises(DataError, match=r"data\.yaml must have at most 1048576 bytes; got 1048577"):
        yolo.read(tmp_path / "data.yaml")


@pytest.mark.parametrize("line", ["../../x.jpg", "/etc/x.jpg", "a/../../../x.jpg"])
def test_an_image_of_a_list_outside_of_the_dataset_is_refused(tmp_path, line):
    write_dataset(tmp_path, description="names: [dog, cat, fox]\ntrain: lists/a.txt\n")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/a.txt").write_text(f"../images/val/e.jpg\n{line}\n")
    with pytest.raises(DataError, match=r"lists/a\.txt, line 2: expected a path inside the folder"):
        yolo.read(tmp_path)


def test_images_that_are_missing_or_repeated_are_refused(tmp_path):
    write_dataset(tmp_path, description="names: [dog, cat, fox]\ntrain: a.txt\n")
    (tmp_path / "a.txt").write_text("images/val/e.jpg\nimages/val/lost.jpg\n")
    with pytest.raises(DataError, match=r"must exist; 1 of 2 missing: '.*lost\.jpg'"):
        yolo.read(tmp_path)
    (tmp_path / "a.txt").write_text("images/val/e.jpg\n./images/val/e.jpg\n")
    with pytest.raises(DataError, match=r"contain each image once; got 1 repeated entry"):
        yolo.read(tmp_path)


@pytest.mark.parametrize("missing", [None, "negative"])
def test_a_split_without_any_label_file_is_refused(tmp_path, missing):
    write_dataset(tmp_path, {"images/val/e.jpg": None})
    with pytest.raises(
        DataError, match=r"none for 1 image\. The file of images/val/e\.jpg must be "
    ):
        yolo.read(tmp_path, split="val", missing=missing)


def test_only_folders_with_a_description_are_yolo_folders(tmp_path):
    assert not yolo.is_yolo_folder(tmp_path)
    with pytest.raises(DataError, match=r"must contain one data\.yaml .*got no such file\. Add"):
        yolo.read(tmp_path)
    (tmp_path / "x.yaml").write_text("names: [dog]\nother: x\n")
    assert not yolo.is_yolo_folder(tmp_path)
    write_dataset(tmp_path)
    assert yolo.is_yolo_folder(tmp_path)
    assert yolo.is_yolo_file(tmp_path / "data.yaml")
    assert not yolo.is_yolo_file(tmp_path / "lost.yaml")
    assert not yolo.is_yolo_file(tmp_path)
    (tmp_path / "b.yml").write_text("\ufeffnames: [dog]\ntrain: images\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"got b\.yml and data\.yaml\. Give one of these files"):
        yolo.read(tmp_path)


LABEL = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1)


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_every_dataset_is_read_as_it_was_written(data):
    names = data.draw(st.lists(LABEL.filter(str.strip), min_size=1, max_size=5, unique=True))
    classes = st.none() | st.lists(st.integers(0, len(names) - 1), max_size=4)
    rows = [[0], *data.draw(st.lists(classes, max_size=4))]
    quoted = [name.replace("'", "''") for name in names]
    items = "".join(f"  - '{name}'\n" for name in quoted)
    if data.draw(st.booleans()):
        items = "".join(f"  {number}: '{name}'\n" for number, name in enumerate(quoted))
    labels = {
        f"images/{row}.jpg": None
        if row_classes is None
        else "".join(f"{number} {BOX}\n" for number in row_classes)
        for row, row_classes in enumerate(rows)
    }
    with tempfile.TemporaryDirectory() as folder:
        root = write_dataset(Path(folder), labels, f"train: images\nnames:\n{items}")
        labelled = yolo.read(root)
    assert labelled.names == names
    expected = [
        [-1 if row is None else int(number in row) for number in range(len(names))] for row in rows
    ]
    assert np.where(labelled.known, labelled.targets, -1).tolist() == expected
