import shutil

import numpy as np
import pytest
from PIL import Image

from surelabel import Recognizer
from surelabel.cli.heat_maps import (
    heat_map_file_names,
    select_heat_map_labels,
    write_heat_maps,
)
from surelabel.cli.terminal import Terminal
from surelabel.errors import DataError
from surelabel.records import LabelTree, Predictions


def test_each_image_gets_a_file_with_heat_maps(home, run):
    for path in sorted((home / "images").iterdir())[3:]:
        path.unlink()
    done = run("tag", "images", "--model", "recognizer", "--heat-maps", "places")
    stems = {path.stem for path in (home / "images").iterdir()}
    files = sorted((home / "places").iterdir())
    assert done.code == 0
    assert "Written: heat maps of 3 images, in places\n" in done.err
    assert {file.name for file in files} == {f"{stem}.heat-maps.png" for stem in stems}
    with Image.open(files[0]) as first:
        assert first.format == "PNG"
        assert np.asarray(first.convert("RGB")).std() > 20


def test_as_many_labels_are_drawn_as_are_asked_for(home, run):
    widths = []
    for count in ("1", "4"):
        line = ["images/" + next((home / "images").iterdir()).name, "--model", "recognizer"]
        options = ["--top-k", count, "--threshold", "0"]
        assert run("tag", *line, "--heat-maps", "places", *options).code == 0
        with Image.open(next((home / "places").iterdir())) as sheet:
            widths.append(sheet.width)
    assert widths[1] > widths[0]


def predictions_of(probabilities, calibration="platt on 60 labelled images"):
    logits = np.log(np.array([probabilities]) / (1 - np.array([probabilities])))
    names = [f"label {i}" for i in range(len(probabilities))]
    return Predictions(
        ["a.jpg"], names, scores=logits.astype("f4"), logits=logits, calibration=calibration
    )


def sheet(predictions, threshold=None, top_k=None):
    labels = select_heat_map_labels(predictions, threshold=threshold, top_k=top_k)["a.jpg"]
    return [(label.name, round(label.value, 2), label.is_shown) for label in labels]


def test_a_label_below_its_threshold_is_on_the_sheet_but_not_shown():
    predictions = predictions_of([0.3, 0.9, 0.6, 0.1])
    default = [("label 1", 0.9, True), ("label 2", 0.6, True), ("label 0", 0.3, False)]
    assert sheet(predictions) == default
    assert sheet(predictions, threshold=0.7, top_k=1) == default[:1]
    assert [shown for *_, shown in sheet(predictions, threshold=0.2, top_k=6)] == [True] * 3 + [
        False
    ]


def test_a_shown_label_precedes_more_probable_labels_below_their_own_thresholds():
    thresholds = np.array([0.2, 0.95, 1.0, 0.5])
    labels = sheet(predictions_of([0.3, 0.9, 0.6, 0.1]), threshold=thresholds, top_k=2)
    assert labels == [("label 0", 0.3, True), ("label 1", 0.9, False)]
    found = select_heat_map_labels(
        predictions_of([0.3, 0.9, 0.6, 0.1]), threshold=thresholds, top_k=4
    )["a.jpg"]
    assert [label.threshold for label in found] == [0.2, 0.95, 1.0, 0.5]


def test_the_ancestors_of_a_shown_label_are_shown():
    found = select_heat_map_labels(
        predictions_of([0.3, 0.9, 0.6]),
        threshold=np.array([0.2, 0.95, 1.0]),
        top_k=3,
        label_tree=LabelTree({"label 0": "label 1"}),
    )["a.jpg"]
    shown = {label.name: label.is_shown for label in found}
    assert shown == {"label 0": True, "label 1": True, "label 2": False}


def test_scores_without_calibration_have_no_threshold():
    found = select_heat_map_labels(
        predictions_of([0.3, 0.9], calibration=None), threshold=None, top_k=None
    )["a.jpg"]
    assert [(label.threshold, label.is_shown) for label in found] == [(None, True)] * 2


def test_a_label_below_the_threshold_of_the_run_has_no_map(home, run):
    path = f"images/{sorted((home / 'images').iterdir())[0].name}"
    heights = []
    for threshold in ("0", "0.9999"):
        line = ["tag", path, "--model", "recognizer", "--threshold", threshold]
        done = run(*line, "--heat-maps", "places")
        with Image.open(next((home / "places").iterdir())) as sheet:
            heights.append(sheet.height)
    assert done.out == f"{path}: -\n"
    assert heights[1] < 0.7 * heights[0]


def test_the_tags_are_printed_all_the_same(home, run):
    line = ["tag", *sorted((home / "images").iterdir())[:2], "--model", "recognizer"]
    assert run(*line, "--heat-maps", "places").out == run(*line).out


def test_images_that_are_called_alike_keep_their_own(home, run):
    one = sorted((home / "images").iterdir())[0]
    (home / "other").mkdir()
    shutil.copy(one, home / "other")
    line = [one.relative_to(home), f"other/{one.name}", "--model", "recognizer"]
    assert run("tag", *line, "--heat-maps", "places").code == 0
    assert len(list((home / "places").iterdir())) == 2
    assert heat_map_file_names(["x/a.png", "y/a.png", "a-2.png"]) == [
        "a.heat-maps.png",
        "a-2.heat-maps.png",
        "a-2-2.heat-maps.png",
    ]


@pytest.mark.parametrize(
    "names", [["a", "a", "a"], ["a-2", "a", "a", "a-2"], ["x/Cat", "cat", "CAT-2"], ["é" * 126] * 2]
)
def test_no_two_files_have_one_name_on_any_file_system(names):
    found = heat_map_file_names([f"{name}.jpg" for name in names])
    assert len({name.casefold() for name in found}) == len(names)
    assert max(len(name.encode()) for name in found) < 230


def test_a_image_with_the_longest_of_names_is_drawn_too(home, run):
    one = sorted((home / "images").iterdir())[0]
    shutil.copy(one, home / f"{'n' * 250}{one.suffix}")
    line = [f"{'n' * 250}{one.suffix}", "--model", "recognizer", "--heat-maps", "places"]
    assert run("tag", *line).code == 0
    assert len(list((home / "places").iterdir())) == 1


def test_a_image_that_is_gone_meanwhile_is_told(home):
    paths = sorted(f"images/{path.name}" for path in (home / "images").iterdir())[:2]
    recognizer = Recognizer.load("recognizer")
    predictions = recognizer.predict(paths)
    (home / paths[1]).unlink()
    terminal = Terminal(as_json=False, quiet=True, device="cpu", seed=0)
    labels = select_heat_map_labels(predictions, threshold=0.0, top_k=None)
    with pytest.raises(
        DataError, match=f"{paths[1]} was tagged, but the file cannot be read again"
    ):
        write_heat_maps(terminal, recognizer, labels, "places")


def test_a_file_in_the_place_of_the_folder_is_told_before_anything_is_tagged(home, run):
    done = run("tag", "images", "--model", "recognizer", "--heat-maps", "labels.csv")
    assert done.code == 1
    assert "--heat-maps requires a folder; got the file labels.csv" in done.err
    assert done.out == ""


def test_an_encoder_without_regions_is_refused_before_anything_is_tagged(home, run):
    line = ["--model", "timm:test_resnet", "--set", "encoder.pretrained=false"]
    done = run("tag", "images", "--labels", "lion", *line, "--heat-maps", "places")
    assert done.code == 1
    assert done.out == ""
    assert not (home / "places").exists()
