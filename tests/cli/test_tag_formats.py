from types import SimpleNamespace

import pytest
from click import UsageError

from surelabel.cli.tag_options import check_images_of_tag_options
from surelabel.data import PRE_ANNOTATION_WRITERS, read_labels
from surelabel.recognizer import Recognizer

OPTIONS_OF_READING = {"label-studio": {"with_predictions": True}, "cvat": {"missing": "negative"}}
FILES = {"label-studio": "tasks.json", "cvat": "tags.xml", "fiftyone": "labels.json"}


@pytest.mark.parametrize("name", PRE_ANNOTATION_WRITERS)
def test_the_written_labels_are_those_that_tag_shows(run, home, name):
    file = home / FILES[name]
    done = run(
        *("tag", "images", "--model", "recognizer", "--threshold", "0.3"),
        *("--format", name, "--out", file),
    )
    assert (done.code, done.out) == (0, ""), done.err
    assert f"Written: {file}" in done.err
    root = {"images_root": home / "images"} if name == "cvat" else {}
    labelled = read_labels(file, **root, **OPTIONS_OF_READING.get(name, {}))
    expected = Recognizer.load("recognizer").predict(labelled.paths)
    assert sorted(labelled.names) == sorted(expected.names)
    columns = [expected.names.index(label) for label in labelled.names]
    shown = expected.probabilities[:, columns] >= 0.3
    assert labelled.targets.astype(bool).tolist() == shown.tolist()
    assert shown.any()
    assert len(labelled) == len(list((home / "images").iterdir()))


def test_options_that_do_not_fit_are_refused_before_an_image_is_read(run, home):
    tag = ("tag", "images", "--model", "recognizer", "--format", "cvat")
    done = run(*tag)
    assert "--format requires --out FILE; got no --out. Add --out FILE." in done.err
    done = run(*tag, "--out", "folder", "--shard", "1/2")
    assert "--shard writes only a folder of predictions; got --format too" in done.err
    done = run(*tag, "--out", "folder", "--cluster", "local")
    assert "it cannot be combined with other outputs and selections; got --format too" in done.err
    done = run(*tag, "--out", "tags.csv", "--spreadsheet-safe")
    assert "--spreadsheet-safe requires --out FILE.csv" in done.err
    done = run(*tag, "--out", "tags.json")
    assert "--format cvat requires --out FILE.xml; got tags.json. Change the suffix." in done.err
    (home / "tags.xml").write_text("annotations")
    done = run(*tag, "--out", "tags.xml")
    assert (
        "tags.xml must be a new file, because an existing file may contain annotations" in done.err
    )
    assert (home / "tags.xml").read_text() == "annotations"
    assert not list(home.glob("*.partial"))


def test_a_model_without_calibration_is_refused(run, home, random_checkpoint):
    model = f"local-dir:{random_checkpoint}"
    line = ["tag", "images", "--model", model, "--labels", "dog, car", "--format", "fiftyone"]
    refused = run(*line, "--out", home / "labels.json")
    assert (refused.code, refused.out) == (1, "")
    assert "--format fiftyone requires probabilities; the model is not calibrated" in refused.err


def test_images_of_an_object_store_have_no_names_in_cvat():
    options = SimpleNamespace(format="cvat")
    with pytest.raises(UsageError, match=r"requires image files; got s3://b/a\.jpg\. Download"):
        check_images_of_tag_options(["a.jpg", "s3://b/a.jpg"], options)
    check_images_of_tag_options(["s3://b/a.jpg"], SimpleNamespace(format="fiftyone"))
