"""Folders that Hugging Face ``datasets`` reads, with the same files and labels."""

import gc
import json
import os
import warnings

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from surelabel.data import read_labels
from surelabel.data.labels.imagefolder import is_image_folder
from surelabel.errors import DataError, InputError


@pytest.fixture(autouse=True)
def _without_progress_bars(tmp_path):
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def load_with_datasets(folder, tmp_path):
    """Return the rows of a folder, with the name of each image file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # datasets does not close metadata files
        stored = datasets.load_dataset(
            "imagefolder", data_dir=str(folder), split="train", cache_dir=str(tmp_path / "cache")
        )
        gc.collect()
    return stored.cast_column("image", datasets.Image(decode=False))


def write_images(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(folder / name)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_metadata_have_the_files_and_labels_of_datasets(tmp_path, kind):
    folder = tmp_path / "photos"
    write_images(folder, ["a.jpg", "sub/b.jpg"])
    rows = [
        {"file_name": "a.jpg", "labels": ["dog", "cat"]},
        {"file_name": "sub/b.jpg", "labels": ["cat"]},
    ]
    if kind == "jsonl":
        (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "metadata.parquet")
    else:
        lines = [f'{row["file_name"]},"{", ".join(row["labels"])}"\n' for row in rows]
        (folder / "metadata.csv").write_text("".join(["file_name,labels\n", *lines]))
    labelled = read_labels(folder)
    expected = load_with_datasets(folder, tmp_path)
    paths = [os.path.realpath(image["path"]) for image in expected["image"]]
    assert sorted(map(os.path.realpath, labelled.paths)) == sorted(paths)
    for path, labels in zip(paths, expected["labels"], strict=True):
        row = [os.path.realpath(p) for p in labelled.paths].index(path)
        names = labels.split(", ") if isinstance(labels, str) else labels
        positive = {n for n, t in zip(labelled.names, labelled.targets[row], strict=True) if t}
        assert positive == set(names)


def test_class_folders_have_the_files_and_labels_of_datasets(tmp_path):
    folder = tmp_path / "photos"
    write_images(folder, ["cat/1.jpg", "cat/2.jpg", "dog/1.jpg"])
    labelled = read_labels(folder)
    expected = load_with_datasets(folder, tmp_path)
    assert labelled.names == expected.features["label"].names == ["cat", "dog"]
    rows = {
        os.path.realpath(p): t
        for p, t in zip(labelled.paths, labelled.targets.tolist(), strict=True)
    }
    assert len(rows) == len(expected) == 3
    for image, number in zip(expected["image"], expected["label"], strict=True):
        row = rows[os.path.realpath(image["path"])]
        assert row == [float(column == number) for column in range(2)]
    assert is_image_folder(folder)
    assert not is_image_folder(folder / "cat")
    with pytest.raises(
        InputError, match="separator can be given only for a folder with a metadata"
    ):
        read_labels(folder, separator="comma")


def test_the_last_folder_of_an_image_is_its_label_and_names_order_the_labels(tmp_path):
    write_images(tmp_path, ["a/dog/1.jpg", "b/dog/2.jpg", "b/hot dog/1.jpg"])
    labelled = read_labels(tmp_path, names=["hot dog", "owl", "dog"])
    assert [os.path.relpath(path, tmp_path) for path in labelled.paths] == [
        *("a/dog/1.jpg", "b/dog/2.jpg", "b/hot dog/1.jpg")
    ]
    assert labelled.targets.tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert labelled.known.all()
    assert labelled.reading == "the label of an image is the name of its folder"
    with pytest.raises(DataError, match=r"must be in names, .*got 1 other label: 'hot dog'"):
        read_labels(tmp_path, names=["dog"])


def test_a_folder_of_splits_and_images_outside_of_classes_are_refused(tmp_path):
    write_images(tmp_path / "a", ["train/cat/1.jpg", "test/cat/1.jpg"])
    with pytest.raises(DataError, match=r"one split; got the splits test, train\. Give .* test "):
        read_labels(tmp_path / "a")
    write_images(tmp_path / "yolo", ["images/train/1.jpg", "images/val/1.jpg"])
    (tmp_path / "yolo" / "labels").mkdir()
    with pytest.raises(DataError, match=r"one split; got the splits train, val\. Give .* train "):
        read_labels(tmp_path / "yolo")
    write_images(tmp_path / "b", ["cat/1.jpg", "dog/1.jpg", "1.jpg"])
    with pytest.raises(DataError, match=r"got '1\.jpg' outside a class folder"):
        read_labels(tmp_path / "b")


def test_two_metadata_files_and_damaged_ones_are_refused(tmp_path):
    write_images(tmp_path, ["a.jpg"])
    (tmp_path / "metadata.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"metadata\.jsonl must be a JSON lines file; got: [^\n]*$"):
        read_labels(tmp_path)
    (tmp_path / "metadata.csv").write_text("file_name,dog\na.jpg,1\n")
    with pytest.raises(
        DataError, match=r"one metadata file; got metadata\.csv and metadata\.jsonl"
    ):
        read_labels(tmp_path)
