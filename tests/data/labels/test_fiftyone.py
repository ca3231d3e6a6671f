import json

import numpy as np
import pytest

from surelabel.data.labels import fiftyone
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions

NAN = pytest.approx(np.nan, nan_ok=True)
IMAGES = ("a.jpg", "b.jpg", "sub/c d.jpg")


def write(folder, content, name="labels.json"):
    (folder / name).write_text(
        content if isinstance(content, str) else json.dumps(content), "utf-8"
    )
    return folder / name


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def labels_json(**changes):
    labels = {
        "a": [{"label": 1, "confidence": 0.93}, {"label": 0, "confidence": 0.5, "attributes": {}}],
        "b": None,
        "sub/c d": [],
    }
    return {"classes": ["dog", "cat", "owl"], "labels": labels} | changes


def classification(label, confidence=None):
    return {
        **{"_id": {"$oid": "5ecdd7f58efd8c18fcea4073"}, "_cls": "Classification", "tags": []},
        **{"label": label, "confidence": confidence, "logits": None},
    }


def sample(filepath, **fields):
    return {
        **{"_id": {"$oid": "5ecdd7f58efd8c18fcea4074"}, "filepath": filepath, "tags": ["test"]},
        **{"metadata": {"_cls": "ImageMetadata", "width": 8}, "_media_type": "image"},
        **fields,
    }


def classifications(*items):
    return {"_cls": "Classifications", "classifications": list(items), "logits": None}


def samples_json(**changes):
    samples = [
        sample("a.jpg", truth=classifications(classification("dog"), classification("cat", 0.4))),
        sample("b.jpg", truth=None),
        sample("sub/c d.jpg", truth=classification("owl")),
    ]
    return {"samples": samples} | changes


def predictions_of(folder, probabilities, names=("dog", "cat"), **fields):
    """Predictions of the images of the folder; the first ones if there are fewer rows."""
    logits = np.log(np.array(probabilities) / (1 - np.array(probabilities))).astype(np.float32)
    paths = [str(folder / name) for name in IMAGES][: len(logits)]
    return Predictions(paths, list(names), logits, logits, **{"calibration": "beta"} | fields)


def test_labels_are_positive_other_classes_negative_and_null_is_unknown(folder):
    labelled = fiftyone.read(write(folder, labels_json()))
    assert labelled.names == ["dog", "cat", "owl"]
    assert labelled.paths == [str(folder / name) for name in IMAGES]
    assert by_nan(labelled) == [[1, 1, 0], [NAN] * 3, [0, 0, 0]]
    assert labelled.reading == (
        "FiftyOne classifications of 2 of 3 images, all labels are unknown for 1 image without "
        "classifications, confidences are not read"
    )


def test_images_without_classifications_are_negative_on_request(folder):
    labelled = fiftyone.read(write(folder, labels_json()), missing="negative")
    assert labelled.targets.tolist()[1] == [0, 0, 0]
    assert labelled.known.all()
    assert "all labels are negative for 1 image" in labelled.reading
    with pytest.raises(InputError, match="missing must be one of negative, unknown; got 'no'"):
        fiftyone.read(folder / "labels.json", missing="no")


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (["dog", "cat"], {"a": 1, "b": 0}),
        (["dog", "cat"], {"a": {"label": 1}, "b": {"label": "dog"}}),
        (["dog", "cat"], {"a": ["cat"], "b": [{"label": 0}]}),
        (None, {"a": "cat", "b": ["dog"]}),
    ],
)
def test_a_target_has_several_documented_forms(folder, classes, labels):
    labelled = fiftyone.read(write(folder, {"classes": classes, "labels": labels}))
    positive = [
        labelled.names[row.index(1)] for row in labelled.targets.tolist() if row.count(1) == 1
    ]
    assert positive == ["cat", "dog"]
    assert labelled.names == (classes or ["cat", "dog"])


def test_images_are_found_in_the_folder_data_or_by_absolute_paths(folder):
    (folder / "data").mkdir()
    (folder / "a.jpg").rename(folder / "data" / "a.jpg")
    labels = {"a": ["dog"], str(folder / "b.jpg"): []}
    labelled = fiftyone.read(write(folder, {"labels": labels}).parent)
    assert labelled.paths == [str(folder / "data" / "a.jpg"), str(folder / "b.jpg")]
    labelled = fiftyone.read(write(folder, {"labels": {"c d": ["x"]}}), images_root=folder / "sub")
    assert labelled.paths == [str(folder / "sub" / "c d.jpg")]


def test_samples_of_a_whole_dataset_are_read(folder):
    labelled = fiftyone.read(write(folder, samples_json(), "samples.json").parent)
    assert labelled.names == ["cat", "dog", "owl"]
    assert labelled.paths == [str(folder / name) for name in IMAGES]
    assert by_nan(labelled) == [[1, 1, 0], [NAN] * 3, [0, 0, 1]]


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ({"classes": {"truth": ["owl", "zebra"]}, "default_classes": ["x"]}, ["owl", "zebra"]),
        ({"classes": {}, "default_classes": ["dog"]}, ["dog"]),
        ({"name": "quickstart"}, []),
    ],
)
def test_the_classes_of_metadata_are_the_first_labels(folder, metadata, names):
    write(folder, metadata, "metadata.json")
    labelled = fiftyone.read(write(folder, samples_json(), "samples.json"))
    assert labelled.names == names + [n for n in ("cat", "dog", "owl") if n not in names]


def test_a_field_must_be_given_if_there_are_several(folder):
    content = samples_json()
    content["samples"][1]["model 2"] = classifications(classification("cat"))
    file = write(folder, content, "samples.json")
    with pytest.raises(DataError, match=r"got 2 fields: .*--label-field 'model 2' \(in Python"):
        fiftyone.read(file)
    assert by_nan(fiftyone.read(file, label_field="model 2")) == [[NAN], [1], [NAN]]
    with pytest.raises(InputError, match=r"got 'model'. The fields are: 'model 2', 'truth'"):
        fiftyone.read(file, label_field="model")
    with pytest.raises(
        InputError, match=r"label_field can be given only for samples.json; got 'x'"
    ):
        fiftyone.read(write(folder, labels_json()), label_field="x")


def test_names_order_the_labels_and_labels_without_a_class_are_unknown(folder):
    file = write(folder, labels_json())
    assert by_nan(fiftyone.read(file, names=["owl", "x", "cat", "dog"]))[0] == [0, NAN, 1, 1]
    with pytest.raises(DataError, match="which has 1 label; got 2 other labels: 'cat', 'owl'"):
        fiftyone.read(file, names=["dog"])


def changed_labels(value, key="a"):
    return labels_json(labels={"b": [0], key: value})


def changed_sample(**fields):
    changed = sample("a.jpg") | fields
    return {"samples": [sample("b.jpg", truth=classification("dog")), changed]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "must be a FiftyOne dataset in JSON; got: "),
        ([1], r"an object with labels \(labels.json\) or with samples .*; got \[1\]"),
        ({"labels": ["dog"]}, "must contain an object with labels"),
        ({"labels": {}}, "must contain at least one label; got none"),
        ({"labels": {"a": []}}, "must contain at least one label; got none"),
        (labels_json(labels={}), "at least one image with labels"),
        (labels_json(classes="dog"), ", classes: expected a list of labels .*; got 'dog'"),
        (labels_json(classes=["dog", "dog"]), ", classes: .*without repetition; got"),
        (labels_json(classes=["dog", 1]), ", classes: expected a list of labels"),
        (changed_labels([3]), ", labels of 'a': a label must be a text, or .* 3 classes; got 3"),
        (changed_labels(-1), ", labels of 'a': .*; got -1"),
        (changed_labels([True]), ", labels of 'a': .*; got True"),
        (changed_labels([None]), ", labels of 'a': .*; got None"),
        (changed_labels([""]), ", labels of 'a': .*; got ''"),
        (changed_labels({"confidence": 0.5}), ", labels of 'a': .*; got None"),
        (changed_labels(["cow"]), ", labels of 'a': .* one of the classes; got 'cow'"),
        (changed_labels([0], "../a"), r", labels of '../a': an image must have .*; got '../a'"),
        (changed_labels([0], "a\0"), ", labels of 'a.x00': an image must have a path"),
        (changed_labels([0], "missing"), "1 of 2 missing: .*missing"),
        ('{"labels": {"a": ["dog"], "a": ["cat"]}}', "contains the key 'a' twice"),
        ({"labels": {"a": ["d\ng"]}}, r"must not contain a line break, .*; got 'd\\ng'"),
        ({"samples": []}, "must contain one field with labels; got 0 fields"),
        ({"samples": ["a.jpg"]}, ", sample 1: expected an object with filepath; got 'a.jpg'"),
        ({"samples": [{"filepath": 3}]}, ", sample 1: expected an object with filepath"),
        (changed_sample(truth=["dog"]), r", sample 2 \('a.jpg'\): 'truth' must be Classifications"),
        (changed_sample(truth=classifications(5)), r", sample 2 \('a.jpg'\): 'truth' must be"),
        (changed_sample(truth={"_cls": "Detections"}), r", sample 2 \('a.jpg'\): 'truth' must be"),
        (
            changed_sample(truth=classification(5)),
            r", sample 2 \('a.jpg'\): a label must be a text",
        ),
        (changed_sample(filepath="../a.jpg"), r", sample 2 \('../a.jpg'\): an image must have"),
        (changed_sample(filepath="b.jpg"), "must contain each image once"),
    ],
)
def test_a_file_that_is_not_fiftyone_is_refused_with_its_place(folder, content, message):
    with pytest.raises(DataError, match=rf"export\.json.*{message}") as caught:
        fiftyone.read(write(folder, content, "export.json"))
    assert "\n" not in str(caught.value)


def test_a_folder_must_contain_one_dataset(folder):
    assert not fiftyone.is_fiftyone_folder(folder)
    for other in ({"0": "dog"}, {"labels": ["dog"]}, {"samples": 5}):
        for name in ("labels.json", "samples.json"):
            write(folder, other, name)
            assert not fiftyone.is_fiftyone_folder(folder)
            (folder / name).unlink()
    with pytest.raises(DataError, match=r"either samples.json or labels.json .*; got neither"):
        fiftyone.read(folder)
    write(folder, labels_json())
    assert fiftyone.is_fiftyone_folder(folder)
    write(folder, samples_json(), "samples.json")
    with pytest.raises(DataError, match=r"got samples.json and labels.json. Give the path"):
        fiftyone.read(folder)


def test_classes_of_damaged_metadata_are_refused(folder):
    file = write(folder, samples_json(), "samples.json")
    write(folder, {"classes": {"truth": ["a", "a"]}}, "metadata.json")
    with pytest.raises(
        DataError, match=r"metadata\.json, classes of 'truth': expected a list of lab"
    ):
        fiftyone.read(file)
    write(folder, {"default_classes": 5}, "metadata.json")
    with pytest.raises(DataError, match=r"metadata\.json, default_classes: expected.*; got 5"):
        fiftyone.read(file)
    write(folder, [], "metadata.json")
    with pytest.raises(DataError, match=r"metadata\.json must contain one object; got \[\]"):
        fiftyone.read(file)


def test_content_is_detected():
    assert fiftyone.is_fiftyone_content(labels_json())
    assert fiftyone.is_fiftyone_content(samples_json())
    for other in ([], {}, {"labels": []}, {"samples": {}}, {"images": [], "annotations": []}, "x"):
        assert not fiftyone.is_fiftyone_content(other)


def test_predictions_are_lists_of_labels_with_confidences(folder):
    predictions = predictions_of(folder, [[0.9, 0.2], [0.4, 0.3], [0.6, 0.8]])
    fiftyone.write_predictions(predictions, folder / "out" / "labels.json")
    content = json.loads((folder / "out" / "labels.json").read_text("utf-8"))
    assert content["classes"] == ["dog", "cat"]
    assert list(content["labels"]) == list(predictions.paths)
    first, second, third = content["labels"].values()
    assert [one["label"] for one in third] == [1, 0]
    assert [one["confidence"] for one in third] == pytest.approx([0.8, 0.6], abs=2e-6)
    assert (len(first), second) == (1, [])
    assert fiftyone.read(folder / "out").targets.tolist() == [[1, 0], [0, 0], [1, 1]]
