"""Label tables in Parquet, with images inside or beside them."""

import io

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from surelabel.data import open_image, read_label_entries, read_labels
from surelabel.data.labels.parquet import read_parquet_table
from surelabel.data.labels.resolution.table_options import TableOptions
from surelabel.errors import DataError


def jpeg(value):
    stream = io.BytesIO()
    Image.new("RGB", (16, 16), (value, 0, 0)).save(stream, "JPEG")
    return stream.getvalue()


def test_a_table_of_datasets_is_read_with_its_images_and_classes(tmp_path):
    features = {
        "image": datasets.Image(),
        "label": datasets.List(datasets.ClassLabel(names=["dog", "cat", "fox"])),
        "width": datasets.Value("int64"),
    }
    rows = {
        "image": [{"bytes": jpeg(n), "path": None} for n in (0, 200)],
        "label": [[0, 1], []],
        "width": [16, 16],
    }
    path = tmp_path / "t.parquet"
    stored = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    pq.write_table(stored.data.table, path)
    labelled = read_labels(path, ignore=["width"])
    assert labelled.paths == [f"{path}/image/0", f"{path}/image/1"]
    assert labelled.names == ["cat", "dog"]
    assert labelled.targets.tolist() == [[1, 1], [0, 0]]
    assert open_image(labelled.paths[1], min_side=8).getpixel((0, 0))[0] > 150
    in_memory = read_labels(stored, ignore=["width"], images_root=tmp_path / "images")
    assert in_memory.names == labelled.names
    assert np.array_equal(in_memory.targets, labelled.targets)


CLASSES = datasets.ClassLabel(names=["dog", "cat", "fox"])
TEXT = datasets.Value("string")
TWO_OF_THREE = [[0, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("feature", "values", "names", "expected"),
    [
        (CLASSES, [2, 0], ["dog", "fox"], [[0, 1], [1, 0]]),
        (datasets.LargeList(CLASSES), [[2, 0], [1]], ["cat", "dog", "fox"], [[0, 1, 1], [1, 0, 0]]),
        (datasets.List(CLASSES, length=2), [[2, 0], [0, 1]], ["cat", "dog", "fox"], TWO_OF_THREE),
        (datasets.List(TEXT, length=2), [["b", "c"], ["a", "b"]], ["a", "b", "c"], TWO_OF_THREE),
        (datasets.List(TEXT), [["x", "y"], []], ["x", "y"], [[1, 1], [0, 0]]),
        (datasets.LargeList(TEXT), [[], ["hot dog, big"]], ["hot dog, big"], [[0], [1]]),
    ],
)
def test_every_column_of_labels_of_datasets_is_read(tmp_path, feature, values, names, expected):
    rows = {"image": [{"bytes": jpeg(n), "path": None} for n in (0, 200)], "label": values}
    features = datasets.Features(image=datasets.Image(), label=feature)
    stored = datasets.Dataset.from_dict(rows, features=features)
    pq.write_table(stored.data.table, tmp_path / "t.parquet")
    for labelled in (
        read_labels(tmp_path / "t.parquet"),
        read_labels(stored, images_root=tmp_path / "images"),
    ):
        assert (labelled.names, labelled.targets.tolist()) == (names, expected)
        assert labelled.known.all()


def test_a_table_of_paths_is_read_like_csv(tmp_path):
    (tmp_path / "a.jpg").write_bytes(jpeg(1))
    pq.write_table(pa.table({"path": ["a.jpg"], "dog": [1], "cat": [None]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("path,dog,cat\na.jpg,1,\n")
    table, csv = (read_labels(tmp_path / name) for name in ("t.parquet", "t.csv"))
    assert (table.paths, table.names) == (csv.paths, csv.names)
    assert np.array_equal(table.targets, csv.targets)
    assert np.array_equal(table.known, csv.known)
    assert read_label_entries(tmp_path / "t.parquet").paths == ["a.jpg"]
    entries = read_parquet_table(tmp_path / "t.parquet", TableOptions(ignore=["cat"]))
    assert entries.columns.names == ["dog"]


def test_one_of_several_image_columns_must_be_chosen(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [b"x"], "b": [b"y"], "dog": [1]}), path)
    with pytest.raises(DataError, match=r"got 'a', 'b'\. Select .* --image-column a "):
        read_labels(path)
    assert read_labels(path, image_column="b").paths == [f"{path}/b/0"]


def test_a_damaged_table_is_refused(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"t\.parquet must be a Parquet table; got: [^\n]*$"):
        read_labels(tmp_path / "t.parquet")
