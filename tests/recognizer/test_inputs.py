import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import surelabel as sl
from surelabel.config import load_run
from surelabel.errors import DataError, InputError, NoReadableImage
from surelabel.recognizer import Recognizer
from surelabel.recognizer.images_in_memory import ImagesInMemory
from surelabel.recognizer.inputs import (
    align_recognizer_input_labels,
    resolve_recognizer_files,
    resolve_recognizer_input,
    resolve_recognizer_targets,
)
from surelabel.records import Images, LabelledFeatures, LabelledImages

ROWS = np.arange(1, 13, dtype=np.float64).reshape(4, 3)


def test_an_array_of_numbers_is_vectors_without_labels():
    found = resolve_recognizer_input(ROWS)
    assert isinstance(found, LabelledFeatures)
    np.testing.assert_array_equal(found.features, ROWS)
    assert found.targets.shape == (4, 0)
    assert found.paths == ["row 0", "row 1", "row 2", "row 3"]


@pytest.mark.parametrize("name", ["train.csv", "train.JSONL", "coco.json"])
def test_a_file_of_labels_must_be_read_first(name):
    for source in (name, Path(name)):
        with pytest.raises(InputError, match=rf"got {name}\. Give surelabel.read_labels\('{name}'"):
            resolve_recognizer_input(source)


def test_a_folder_of_images_can_have_the_suffix_of_a_file_of_labels(tmp_path):
    (tmp_path / "train.csv").mkdir()
    (tmp_path / "train.csv" / "a.jpg").touch()
    images = resolve_recognizer_input(tmp_path / "train.csv")
    assert images == Images([str(tmp_path / "train.csv" / "a.jpg")])


def test_an_array_of_words_is_paths():
    assert resolve_recognizer_input(np.array(["a.jpg", "b.jpg"])) == Images(["a.jpg", "b.jpg"])


PIXELS = np.zeros((5, 4, 3), np.uint8)
NEITHER = [
    np.ones(3),
    np.ones((2, 3, 4)),
    np.array(1.0),
    np.ones((4, 3), np.int64),
    np.ones((4, 3), np.uint8),
    np.ones((4, 3, 4), np.uint8),
    np.ones((2, 5, 4, 3)),
    np.ones((0, 4, 3), np.uint8),
]


@pytest.mark.parametrize("array", NEITHER, ids=lambda array: f"{array.dtype} {array.shape}")
def test_an_array_of_neither_vectors_nor_pixels_is_refused_with_both_meanings(array):
    expected = r"vectors, float \(n, d\), or RGB pixels, uint8 .*; got "
    with pytest.raises(InputError, match=f"{expected}{array.dtype}"):
        resolve_recognizer_input(array)


@pytest.mark.parametrize("source", [PIXELS, PIXELS[None], [PIXELS], Image.fromarray(PIXELS), b"x"])
def test_one_image_in_memory_is_one_image(source):
    resolved = resolve_recognizer_input(source)
    assert isinstance(resolved, ImagesInMemory)
    assert resolved.paths == ["image 0"]
    assert len(resolved) == 1


def test_an_array_of_several_images_is_split():
    pixels = np.arange(2 * 5 * 4 * 3, dtype=np.uint8).reshape(2, 5, 4, 3)
    resolved = resolve_recognizer_input(pixels)
    np.testing.assert_array_equal([np.asarray(image) for image in resolved.images], pixels)


@pytest.mark.parametrize("tensor", [torch.ones(2, 128), torch.zeros(5, 4, 3, dtype=torch.uint8)])
def test_a_tensor_is_refused_like_an_array_with_both_meanings(tensor):
    message = (
        r"must be a NumPy array with feature vectors, float \(n, d\), or RGB pixels, .*; "
        rf"got {tensor.dtype} of shape {re.escape(str(tuple(tensor.shape)))}\. Convert the array"
    )
    for source in (tensor, [tensor]):
        with pytest.raises(InputError, match=message):
            resolve_recognizer_input(source)


@pytest.mark.parametrize(
    ("source", "received"),
    [
        (None, "NoneType"),
        (3, "int"),
        ({"a.jpg": 1}, "dict"),
        (BytesIO(b"content"), "BytesIO"),
        ([["a.jpg"], ["b.jpg"]], "list at index 0 of a list"),
        ([[0.1, 0.2], [0.3, 0.4]], "list at index 0 of a list"),
        (["a.jpg", None], "NoneType at index 1 of a list"),
        (np.array(["a.jpg", 3.5], dtype=object), "float at index 1 of a list"),
    ],
)
def test_an_input_of_another_type_is_refused_with_its_type(source, received):
    expected = (
        "^Images must be paths, PIL images, contents of image files as bytes, or NumPy arrays; got "
        f"{received}. Give one image, a flat list of images, or an array of feature vectors.$"
    )
    with pytest.raises(InputError, match=expected):
        resolve_recognizer_input(source)


@pytest.mark.parametrize("array", [np.array("a.jpg"), np.array([["a.jpg"], ["b.jpg"]])])
def test_an_array_of_paths_has_one_axis(array):
    with pytest.raises(InputError, match=r"shape \(n,\); got \(.*Give one column"):
        resolve_recognizer_input(array)


def test_an_empty_list_is_refused(zero_shot):
    with pytest.raises(InputError, match=r"at least one image file; got none\. Give image files"):
        zero_shot.predict([])


def test_files_and_images_in_memory_are_not_mixed():
    with pytest.raises(
        InputError, match=r"only images in memory; got 1 image in .* among 2 images"
    ):
        resolve_recognizer_input(["a.jpg", b"content"])


def test_images_in_memory_are_refused_where_files_are_required():
    with pytest.raises(InputError, match="Image files or feature vectors are required; got 2"):
        resolve_recognizer_files([b"first", b"second"])


def test_separate_targets_label_paths_and_vectors():
    targets = np.array([[1, np.nan], [0, 1]])
    images = resolve_recognizer_targets(["a.jpg", "b.jpg"], targets, ["lion", "car"])
    assert isinstance(images, LabelledImages)
    assert list(images.paths) == ["a.jpg", "b.jpg"]
    np.testing.assert_array_equal(images.known, [[True, False], [True, True]])
    vectors = resolve_recognizer_targets(ROWS[:2], targets, ["lion", "car"])
    assert isinstance(vectors, LabelledFeatures)
    np.testing.assert_array_equal(vectors.targets, [[1, 0], [0, 1]])


def test_targets_are_given_once():
    labelled = LabelledFeatures(ROWS, ["lion"], np.zeros((4, 1)))
    assert resolve_recognizer_targets(labelled, None, ["lion"]) is labelled
    with pytest.raises(InputError, match="Targets must be given once; got LabelledFeatures"):
        resolve_recognizer_targets(labelled, np.zeros((4, 1)), ["lion"])


def test_targets_of_another_number_of_images_are_refused():
    with pytest.raises(InputError, match=r"one row per image .* \(2, 1\); got shape \(3, 1\)"):
        resolve_recognizer_targets(["a.jpg", "b.jpg"], np.zeros((3, 1)), ["lion"])


def test_an_array_with_nan_is_refused():
    with pytest.raises(InputError, match=r"features must be finite; got 12"):
        resolve_recognizer_input(ROWS * np.nan)


def test_numbers_too_large_for_float32_are_refused_without_a_warning():
    with pytest.raises(InputError, match=r"features must be finite; got 12"):
        resolve_recognizer_input(ROWS * 1e300)


@pytest.mark.parametrize("given", [ROWS, Images(["a.jpg"]), ["a.jpg"]])
def test_labels_are_asked_for_where_there_are_none(given):
    with pytest.raises(InputError, match=rf"Labels are required.* got {type(given).__name__}"):
        align_recognizer_input_labels(given, ["lion"], {"lion": ["lion"]})


def test_a_recognizer_predicts_an_array_like_vectors_with_labels():
    run = load_run(overrides=["encoder.name=features:3", "method.name=linear", "epochs=1"])
    labelled = LabelledFeatures(ROWS, ["lion"], np.array([[0], [1], [0], [1]]))
    fitted = Recognizer(run, ["lion"]).fit(labelled)
    np.testing.assert_array_equal(fitted.predict(ROWS).scores, fitted.predict(labelled).scores)
    with pytest.raises(InputError, match=r"features must have 3 columns.* got 2"):
        fitted.predict(ROWS[:, :2])


@pytest.fixture(scope="module")
def zero_shot():
    return Recognizer.zero_shot("tiny-vit", ["lion", "car"])


@pytest.fixture(scope="module")
def files():
    return sl.collection("scenes-80", split="test").paths[:3]


def test_the_content_of_files_is_predicted_like_the_files(zero_shot, files):
    contents = [Path(file).read_bytes() for file in files]
    predictions = zero_shot.predict(contents)
    assert list(predictions.paths) == ["image 0", "image 1", "image 2"]
    np.testing.assert_array_equal(predictions.logits, zero_shot.predict(files).logits)
    assert len(zero_shot.predict(contents[0])) == 1
    for buffer in (bytearray, memoryview):
        expected = predictions.logits[:1]
        np.testing.assert_allclose(zero_shot.predict(buffer(contents[0])).logits, expected, 1e-5)
        assert len(zero_shot.predict([buffer(content) for content in contents])) == 3


def test_pixels_and_pil_images_are_predicted_alike(zero_shot, files):
    opened = [Image.open(file).convert("RGB") for file in files]
    expected = zero_shot.predict(files).scores
    np.testing.assert_array_equal(zero_shot.predict(opened).scores, expected)
    pixels = np.stack([np.asarray(image) for image in opened])
    np.testing.assert_array_equal(zero_shot.predict(pixels).scores, expected)
    np.testing.assert_array_equal(zero_shot.predict(pixels[0]).scores, expected[:1])


def test_views_of_images_in_memory_are_those_of_the_files(files):
    recognizer = Recognizer(sl.load_run(None, ["method.name=tiles"]), ["lion", "car", "guitar"])
    contents = [Path(file).read_bytes() for file in files]
    np.testing.assert_array_equal(
        recognizer.predict(contents).scores, recognizer.predict(files).scores
    )


def test_bytes_that_are_no_images_are_skipped_with_their_reasons(zero_shot, files):
    good = Path(files[0]).read_bytes()
    predictions = zero_shot.predict([b"", good, b"no image", good[:2000]])
    assert list(predictions.paths) == ["image 1"]
    skipped = {image.path: image.reason for image in predictions.skipped}
    assert skipped["image 0"] == "empty file"
    assert skipped["image 2"].startswith("not an image of a supported format")
    assert skipped["image 3"] == "truncated file"


def test_each_bad_item_is_in_the_error_of_strict_predictions(zero_shot, files):
    good = Path(files[0]).read_bytes()
    expected = r"2 of 3 images cannot be decoded: image 0: empty file; image 2: not an image"
    with pytest.raises(DataError, match=expected):
        zero_shot.predict([b"", good, b"no image"], strict=True)
    expected = "1 of 1 image cannot be decoded: image 0: empty file"
    with pytest.raises(NoReadableImage, match=expected) as error:
        zero_shot.predict(b"")
    assert [image.reason for image in error.value.skipped] == ["empty file"]


def test_a_table_of_images_with_labels_must_be_read_first():
    pandas = pytest.importorskip("pandas")
    datasets = pytest.importorskip("datasets")
    table = pandas.DataFrame({"image": ["a.jpg"], "lion": [1]})
    for source in (table, datasets.Dataset.from_pandas(table)):
        with pytest.raises(
            InputError, match=r"first be read.*Give surelabel\.read_labels\(table, "
        ):
            resolve_recognizer_input(source)


def test_the_columns_of_a_table_of_targets_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"b": [0.0, 1.0], "a": [1.0, 1.0]})
    found = resolve_recognizer_targets(ROWS[:2], table, ["a", "b"])
    np.testing.assert_array_equal(found.targets, [[1, 0], [1, 1]])
    unnamed = pandas.DataFrame([[0.0, 1.0], [1.0, 1.0]])
    found = resolve_recognizer_targets(ROWS[:2], unnamed, ["a", "b"])
    np.testing.assert_array_equal(found.targets, [[0, 1], [1, 1]])
    with pytest.raises(
        InputError, match=r"must have the names of the 2 labels, in any order; got b, a\. Select"
    ):
        resolve_recognizer_targets(ROWS[:2], table, ["a", "c"])
    vectors = resolve_recognizer_input(pandas.DataFrame(ROWS, columns=["x", "y", "z"]))
    np.testing.assert_array_equal(vectors.features, ROWS)
