import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

from surelabel.data import read_labels
from surelabel.data.labels.resolution.arrow_tables import name_table_classes
from surelabel.errors import DataError, InputError

FRAME = {"image": ["a.jpg", "b.jpg"], "dog": [True, False], "cat": [0.0, np.nan], "cow": ["1", "0"]}


@pytest.fixture(autouse=True)
def _quiet_progress():
    datasets.disable_progress_bars()


def cells(labelled):
    return np.where(labelled.known, labelled.targets, -1).tolist()


def test_a_frame_is_read_as_its_csv_file(folder):
    frame = pd.DataFrame(FRAME)
    frame.to_csv(folder / "t.csv")
    in_memory = read_labels(frame, images_root=folder)
    from_file = read_labels(folder / "t.csv")
    assert in_memory.names == from_file.names == ["dog", "cat", "cow"]
    assert in_memory.paths == from_file.paths == [str(folder / "a.jpg"), str(folder / "b.jpg")]
    assert cells(in_memory) == cells(from_file) == [[1, 0, 1], [0, -1, 0]]
    assert in_memory.reading == "images in 'image'; one column per label"


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(FRAME).set_index("image"),
        pd.DataFrame(FRAME, index=["x", "y"]),
        pd.DataFrame(FRAME).astype({"image": "category", "cow": "category"}),
        pa.table(FRAME),
        pa.concat_tables([pa.table(FRAME)[:1], pa.table(FRAME)[1:]]),
    ],
    ids=["index of images", "index of names", "categories", "arrow", "chunks"],
)
def test_every_kind_of_frame_is_read(folder, frame):
    labelled = read_labels(frame, images_root=folder)
    assert (labelled.names, cells(labelled)) == (["dog", "cat", "cow"], [[1, 0, 1], [0, -1, 0]])


@pytest.mark.parametrize("labels", [["dog", "hot dog, a|b"], "dog;hot dog, a|b"])
def test_lists_of_labels_are_never_separated(folder, labels):
    frame = pd.DataFrame({"filename": ["a", "b", "a"], "tags": [labels, None, None]})
    labelled = read_labels(frame, images_root=folder, separator="semicolon")
    assert (labelled.names, cells(labelled)) == (["dog", "hot dog, a|b"], [[1, 1], [0, 0]])


@pytest.mark.parametrize("label", [" dog ", "dog "])
def test_spaces_around_a_column_are_no_part_of_its_label(folder, label):
    columns = {" image ": ["a.jpg", "b.jpg"], label: [1, 0], "cat": [0, 1]}
    for table in (pd.DataFrame(columns), pa.table(columns), datasets.Dataset.from_dict(columns)):
        labelled = read_labels(table, images_root=folder)
        assert (labelled.names, cells(labelled)) == (["dog", "cat"], [[1, 0], [0, 1]])


def test_a_frame_with_duplicate_columns_is_refused_with_their_names(folder):
    frame = pd.DataFrame([["a.jpg", 1, 0, 1]], columns=["path", "dog", "cat", "dog"])
    with pytest.raises(
        DataError, match=r"column names of DataFrame .*repeated names 'dog'\. Rename"
    ):
        read_labels(frame, images_root=folder)
    with pytest.raises(DataError, match=r"unique and not empty; got 'dog' 2 times"):
        read_labels(frame.rename(columns={"cat": "dog "}).iloc[:, :3], images_root=folder)


@pytest.mark.parametrize("images", [[0, 17], [0.0, 17.0], ["0", "x.jpg", "3"]])
def test_image_names_that_may_have_lost_zeros_are_read_as_text(folder, images):
    frame = pd.DataFrame({"image": images, "dog": 1})
    message = r"integers, which may have lost leading zeros .*in pandas with dtype=str\. Paths are"
    with pytest.raises(DataError, match=message):
        read_labels(frame, images_root=folder)


@pytest.mark.parametrize("images", [["00000", "00017"], ["0", "a.jpg", "3"], ["0", "x.jpg"]])
def test_zeros_are_not_mentioned_for_other_missing_images(folder, images):
    with pytest.raises(DataError, match=r"must exist; 2 of \d missing") as caught:
        read_labels(pd.DataFrame({"image": images, "dog": 1}), images_root=folder)
    assert "integers" not in str(caught.value)


def test_the_options_apply_to_frames(folder):
    frame = pd.DataFrame({"id": ["a", "b"], "dog": [-1, 0], "cat": [1, -1], "fold": [3, 4]})
    options = {"images_root": folder, "image_column": "id", "ignore": ["fold"]}
    with pytest.raises(DataError, match=r"^DataFrame, row 0: the target of 'dog' is -1"):
        read_labels(frame, **options)
    labelled = read_labels(frame, **options, minus_one="negative", zero="unknown")
    assert cells(labelled) == [[0, 1], [-1, 0]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"image": ["a", "b"], "dog": [1, 7]}, "DataFrame, row 1: the target of 'dog' .*got 7"),
        ({"image": ["a", None], "dog": [1, 0]}, "row 1: expected an image path; got an empty cell"),
        ({"image": ["a", "a"], "dog": [1, 0]}, "for 'dog' on row 0, but 0 on row 1"),
        ({"image": ["a"], "tags": [["do\ng"]]}, r"row 0: a label must not contain a line break"),
        ({"image": ["a"], "tags": [[3]]}, "row 0: expected labels as strings; got 3"),
        ({"image": ["a"], "do\ng": [1]}, r"got 'do\\ng', column 2"),
        ({"image": ["a", "b"], "dog": [1, object()]}, "columns of DataFrame must contain strings"),
        ({"image": [[1.0]], "dog": [1]}, "image column of DataFrame must contain paths, or images"),
        ({"x": ["a.jpg"], "dog": [1]}, r"add --image-column x \(in Python image_column='x'\)"),
        ({"image": [], "dog": []}, "at least one image with labels"),
    ],
)
def test_an_invalid_frame_is_refused_with_its_row(folder, columns, message):
    with pytest.raises(DataError, match=message):
        read_labels(pd.DataFrame(columns), images_root=folder)


def embedded(tmp_path, **columns):
    """Return a dataset of two images, whose files are inside the dataset, and its columns."""
    images = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    features = datasets.Features(image=datasets.Image(), **{k: f for k, (f, _) in columns.items()})
    values = {"image": images, **{k: v for k, (_, v) in columns.items()}}
    return datasets.Dataset.from_dict(values, features=features)


CLASSES = datasets.ClassLabel(names=["dog", "hot dog, big"])


@pytest.mark.parametrize(
    ("columns", "names", "expected"),
    [
        ({"labels": (datasets.List(CLASSES), [[0, 1], []])}, CLASSES.names, [[1, 1], [0, 0]]),
        ({"label": (CLASSES, [1, 0])}, CLASSES.names, [[0, 1], [1, 0]]),
        (
            {"tags": (datasets.List(datasets.Value("string")), [["x"], ["x", "y"]])},
            ["x", "y"],
            [[1, 0], [1, 1]],
        ),
        (
            {
                "dog": (datasets.Value("bool"), [True, False]),
                "cat": (datasets.ClassLabel(names=["0", "1"]), [1, 0]),
            },
            ["dog", "cat"],
            [[1, 1], [0, 0]],
        ),
    ],
)
def test_a_dataset_is_read_with_its_images(tmp_path, columns, names, expected):
    dataset = embedded(tmp_path, **columns)
    labelled = read_labels(dataset, images_root=tmp_path / "images")
    assert (labelled.names, cells(labelled)) == (names, expected)
    colours = [Image.open(path).getpixel((0, 0)) for path in labelled.paths]
    assert colours == [(255, 0, 0), (0, 0, 255)]
    again = read_labels(dataset, images_root=tmp_path / "images")
    assert again.paths == labelled.paths
    assert len(list((tmp_path / "images").iterdir())) == 2


def test_a_selection_of_a_dataset_of_files_needs_no_folder(folder):
    Image.new("RGB", (8, 8)).save(folder / "a.jpg")
    features = datasets.Features(image=datasets.Image(), dog=datasets.Value("int64"))
    values = {"image": [str(folder / "b.jpg"), str(folder / "a.jpg")], "dog": [1, 0]}
    dataset = datasets.Dataset.from_dict(values, features=features)
    labelled = read_labels(dataset.select([1]))
    assert (labelled.paths, cells(labelled)) == ([str(folder / "a.jpg")], [[0]])


def test_a_dataset_with_images_inside_needs_a_folder(tmp_path):
    dataset = embedded(tmp_path, label=(CLASSES, [1, 0]))
    with pytest.raises(InputError, match=r'inside the table .*Give images_root="FOLDER"'):
        read_labels(dataset)
    missing = embedded(tmp_path, label=(CLASSES, [1, None]))
    with pytest.raises(
        DataError, match=r"Dataset, row 1: expected class indices from 0 to .* 'label'; got \[None"
    ):
        read_labels(missing, images_root=tmp_path)


@pytest.mark.parametrize("column", [[0, 2], [0.0, 1.0], ["cat", "dog"], [[1], [0, -1]]])
def test_a_number_of_no_class_is_refused(column):
    with pytest.raises(DataError, match=r"row \d: expected class indices from 0 to 1 .* 'label'"):
        name_table_classes("label", pa.chunked_array([column]), ["cat", "dog"])


def test_other_sources_are_refused_with_what_to_give(folder):
    dataset = embedded(folder, label=(CLASSES, [1, 0]))
    splits = datasets.DatasetDict(train=dataset, test=dataset)
    with pytest.raises(InputError, match=r"got DatasetDict. Choose one split: dataset\['train'\]"):
        read_labels(splits)
    with pytest.raises(InputError, match=r"got IterableDataset\. Load .* without streaming"):
        read_labels(dataset.to_iterable_dataset())
    with pytest.raises(InputError, match=r"got dict\. Give a file, a DataFrame or a Dataset"):
        read_labels(FRAME)
