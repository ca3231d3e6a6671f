import json
from urllib.parse import quote

import numpy as np
import pytest

from surelabel.data.labels import label_studio
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions

NAN = pytest.approx(np.nan, nan_ok=True)


def choices(*selected, field="tags"):
    return {
        **{"id": "x", "type": "choices", "from_name": field, "to_name": "image"},
        **{"origin": "manual", "value": {"choices": list(selected)}},
    }


def annotation(*results, **changes):
    return {"id": 1, "completed_by": 1, "result": list(results), "was_cancelled": False} | changes


def task(image, *annotations, predictions=(), number=11):
    return {
        **{"id": number, "data": {"image": image}, "annotations": list(annotations)},
        **{"drafts": [], "predictions": list(predictions), "meta": {}, "project": 83},
    }


def read(folder, content, **options):
    path = folder / "export.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return label_studio.read(path, **options)


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def predictions_of(folder, probabilities, names=("dog", "cat"), **fields):
    """Predictions of the images of the folder; the first ones if there are fewer rows."""
    logits = np.log(np.array(probabilities) / (1 - np.array(probabilities))).astype(np.float32)
    paths = [str(folder / name) for name in ("a.jpg", "b.jpg", "sub/c d.jpg")][: len(logits)]
    fields = {"calibration": "beta", "model": "model 1"} | fields
    return Predictions(paths, list(names), logits, logits, **fields)


SAMPLE = [
    task("/data/local-files/?d=a.jpg", annotation(choices("dog", "a, b")), number=1),
    task(
        "b.jpg",
        annotation(choices("cat"), was_cancelled=True, id=2),
        predictions=[{"model_version": "m", "score": 0.9, "result": [choices("owl")]}],
        number=2,
    ),
    task(
        "/data/local-files/?d=sub%2Fc%20d.jpg",
        annotation({"type": "rectanglelabels", "value": {"rectanglelabels": ["box"]}}),
        predictions=[5, 6],
        number=3,
    ),
]


def test_selected_choices_are_positive_and_the_others_negative(folder):
    labelled = read(folder, SAMPLE)
    assert labelled.names == ["a, b", "dog", "owl"]
    assert labelled.paths == [str(folder / p) for p in ("a.jpg", "b.jpg", "sub/c d.jpg")]
    assert by_nan(labelled) == [[1, 1, 0], [NAN, NAN, NAN], [0, 0, 0]]
    assert labelled.reading == (
        "choices of the field 'tags' in Label Studio annotations of 2 of 3 tasks, all choices are "
        "unknown for 1 task without a finished annotation"
    )


def test_names_are_the_choices_of_the_project(folder):
    labelled = read(folder, SAMPLE, names=["zebra", "owl", "dog", "a, b"])
    assert by_nan(labelled) == [[0, 0, 1, 1], [NAN] * 4, [0] * 4]
    with pytest.raises(DataError, match=r"which has 1 label; got 2 other labels: 'a, b', 'owl'"):
        read(folder, SAMPLE, names=["dog"])


def test_targets_of_several_annotators_are_fractions(folder):
    several = [annotation(choices("dog")), annotation(choices("dog", "cat")), annotation()]
    labelled = read(folder, [task("a.jpg", *several)])
    assert labelled.targets.tolist() == [[1 / 3, 2 / 3]]
    assert labelled.reading.endswith(
        "targets of 1 task with several annotations are fractions of the annotations"
    )
    ten = read(folder, [task("a.jpg", *[annotation(choices("dog"))] * 10)])
    assert ten.targets.tolist() == [[1.0]]
    several[0]["ground_truth"] = True
    labelled = read(folder, [task("a.jpg", *several)], names=["cat", "dog"])
    assert labelled.targets.tolist() == [[0, 1]]


def test_a_field_must_be_given_if_there_are_several(folder):
    content = [task("a.jpg", annotation(choices("dog"), choices("sharp", field="quality of it")))]
    with pytest.raises(DataError, match=r"got 2 fields: .*--label-field 'quality of it' \(in Py"):
        read(folder, content)
    labelled = read(folder, content, label_field="tags")
    assert (labelled.names, labelled.targets.tolist()) == (["dog"], [[1]])
    with pytest.raises(InputError, match=r"got 'tag'. The fields are: 'quality of it', 'tags'"):
        read(folder, content, label_field="tag")


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ("/data/local-files/?d=images/c%20d%2B1.jpg", {}),
        ("images/c d+1.jpg", {}),
        ("file:///ROOT/images/c%20d+1.jpg", {}),
        ("file://localhost/ROOT/images/c%20d%2B1.jpg", {}),
        ("/ROOT/images/c d+1.jpg", {}),
        ("/data/upload/1/c d+1.jpg", {"images_root": "media"}),
        ("/data/local-files/?d=1/c%20d%2B1.jpg", {"images_root": "media/upload"}),
    ],
)
def test_the_path_of_an_image_has_several_forms(tmp_path, value, options):
    folders = tmp_path / "images", tmp_path / "media" / "upload" / "1"
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "c d+1.jpg").touch()
    value = value.replace("/ROOT", quote(str(tmp_path)) if ":" in value else str(tmp_path))
    options = {name: tmp_path / root for name, root in options.items()}
    labelled = read(tmp_path, [task(value, annotation(choices("dog")))], **options)
    assert labelled.paths == [str(folders[bool(options)] / "c d+1.jpg")]


def test_the_only_image_path_of_data_is_found(folder):
    item = task("", annotation(choices("dog"))) | {"data": {"photo": "a.jpg", "text": "a", "n": 1}}
    assert read(folder, [item]).paths == [str(folder / "a.jpg")]


def changed(**changes):
    return [task("b.jpg", annotation(choices("dog")), number=1), SAMPLE[0] | {"id": 7} | changes]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", r"must be an export of Label Studio in JSON; got: "),
        ({"id": 1}, r"must contain a list of tasks of Label Studio; got a value of type dict"),
        ([SAMPLE[0], 3], r", element 2: expected a task, .*; got 3"),
        ([{"image": "a.jpg", "tags": "dog"}], r", element 1: .* JSON-MIN is not supported"),
        (
            changed(data={"text": "a"}),
            r", task 7: data must contain the path of one image.*no path",
        ),
        (
            changed(data={"x": "a.jpg", "y": "b.jpg"}),
            r", task 7: data must .*got 'x', 'y'\. Rename",
        ),
        (
            changed(data={"image": "https://example.com/a.jpg"}),
            r", task 7: an image must be a local file; got 'https://.*https URLs are not dow",
        ),
        (
            changed(data={"image": "data:image/png;base64,AAAA"}),
            r", task 7: .*of data URLs are not",
        ),
        (
            changed(data={"image": "/data/local-files/?d=../a.jpg"}),
            r", task 7: .* got '\.\./a\.jpg'",
        ),
        (
            changed(data={"image": "/data/local-files/?d=/a.jpg"}),
            r", task 7: .*relative.*'/a\.jpg'",
        ),
        (changed(data={"image": "/data/local-files/?p=a.jpg"}), r", task 7: .*got ''\. Correct"),
        (changed(data={"image": "sub/../../a.jpg"}), r", task 7: .*'sub/\.\./\.\./a\.jpg'"),
        (changed(data={"image": "a\0.jpg"}), r", task 7: an image must have a path.*x00"),
        (changed(annotations={"result": []}), r", task 7: annotations must be a list of objects"),
        (changed(annotations=[5]), r", task 7: annotations must be a list of objects; got \[5\]"),
        (
            changed(annotations=[{"result": 5}]),
            r", task 7: result must be a list of objects; got 5",
        ),
        (changed(predictions=["x"]), r", task 7: predictions must be a list of objects"),
        (
            changed(annotations=[annotation(choices("dog") | {"value": {"choices": "dog"}})]),
            r", task 7: a result of the type choices must have .* 'tags' and value \{'choices': 'd",
        ),
        (changed(annotations=[annotation(choices(["a", "b"]))]), r", task 7: .* list of texts"),
        (changed(annotations=[annotation(choices("a", field=None))]), r", task 7: .* None and"),
        (
            [task("a.jpg", annotation())],
            r"must contain one field with labels; got 0 fields\. Annot",
        ),
        ([task("a.jpg", annotation(choices()))], r"at least one selected choice; got none\. Give"),
        ([], r"must contain one field"),
        (changed(annotations=[annotation(choices("a", field="b\nc"))]), r"control character"),
        (changed(data={"image": "b.jpg"}), r"must contain each image once; .*'b\.jpg'"),
        (changed(data={"image": "missing.jpg"}), r"1 of 2 missing: .*missing\.jpg"),
        (changed(annotations=[annotation(choices("a\nb"))]), r"control character; got 'a\\nb'"),
    ],
)
def test_a_file_that_is_no_export_is_refused_with_its_place(folder, content, message):
    with pytest.raises(DataError, match=rf"^(All images of )?\S*export\.json.*{message}") as caught:
        read(folder, content)
    assert "\n" not in str(caught.value)


def test_content_is_detected():
    assert label_studio.is_label_studio_content(SAMPLE)
    for other in ([], {}, [1], [{"image": "a.jpg"}], {"data": {}}, "text"):
        assert not label_studio.is_label_studio_content(other)


def test_predictions_are_tasks_with_all_probabilities(folder):
    predictions = predictions_of(folder, [[0.9, 0.2], [0.4, 0.3], [0.6, 0.8]])
    label_studio.write_predictions(predictions, folder / "tasks.json")
    first, second, third = json.loads((folder / "tasks.json").read_text("utf-8"))
    path = str(folder / "sub" / "c d.jpg")
    assert third["data"]["path"] == path
    assert third["data"]["image"] == "/data/local-files/?d=" + path[1:].replace(" ", "%20")
    assert first["data"]["probabilities"] == pytest.approx({"dog": 0.9, "cat": 0.2}, abs=2e-6)
    assert first["predictions"][0]["model_version"] == "model 1"
    assert first["predictions"][0]["score"] == pytest.approx((0.9 + 0.8) / 2, abs=2e-6)
    (result,) = third["predictions"][0]["result"]
    assert (result["from_name"], result["to_name"], result["type"]) == (
        "labels",
        "image",
        "choices",
    )
    assert result["value"] == {"choices": ["cat", "dog"]}
    assert second["predictions"][0]["result"][0]["value"] == {"choices": []}


def test_predictions_are_read_only_if_they_are_requested(folder):
    label_studio.write_predictions(
        predictions_of(folder, [[0.9, 0.2], [0.4, 0.3]]), folder / "tasks.json"
    )
    labelled = label_studio.read(folder / "tasks.json")
    assert not labelled.known.any()
    labelled = label_studio.read(folder / "tasks.json", with_predictions=True, names=["dog", "cat"])
    assert labelled.targets.tolist() == [[1, 0], [0, 0]]
    assert labelled.paths == [str(folder / name) for name in ("a.jpg", "b.jpg")]
    assert "predictions are read as annotations of 2 tasks" in labelled.reading
    two = [task("a.jpg", predictions=[annotation(choices("dog"))] * 2)]
    with pytest.raises(DataError, match=r"task 11: expected at most one prediction; got 2"):
        read(folder, two, with_predictions=True)


def test_a_corrected_export_of_written_tasks_replaces_the_predictions(folder):
    label_studio.write_predictions(
        predictions_of(folder, [[0.9, 0.2], [0.4, 0.3]]), folder / "tasks.json"
    )
    content = json.loads((folder / "tasks.json").read_text("utf-8"))
    content[0]["annotations"] = [annotation(choices("cat", field="labels"))]
    labelled = read(folder, content)
    assert labelled.names == ["cat", "dog"]
    assert by_nan(labelled) == [[1, 0], [NAN, NAN]]
    assert read(folder, content, images_root="/").paths == labelled.paths


def test_thresholds_select_the_labels(folder):
    predictions = predictions_of(folder, [[0.9, 0.2], [0.4, 0.3]])
    label_studio.write_predictions(predictions, folder / "tasks.json", thresholds=0.3)
    labelled = label_studio.read(folder / "tasks.json", with_predictions=True)
    assert dict(zip(labelled.names, labelled.targets.T.tolist(), strict=True)) == {
        "dog": [1, 1],
        "cat": [0, 1],
    }
