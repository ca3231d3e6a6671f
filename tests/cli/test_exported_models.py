"""A file of ``surelabel export`` is a model of the commands that need no fit."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image

COLOURS = {"reddish": (200, 10, 10), "greenish": (100, 150, 10), "bluish": (0, 0, 250)}


@pytest.fixture
def colours(tmp_path, monkeypatch):
    """Make a folder with 24 images of three colours and their labels the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "red", "green", "sea"])
        for number in range(24):
            name = f"{list(COLOURS)[number % 3]}{number}"
            colour = np.add(COLOURS[name.rstrip("0123456789")], number // 6)
            Image.new("RGB", (20, 10), tuple(colour.tolist())).save(f"images/{name}.png")
            rows.writerow([f"images/{name}.png", *(colour > 120).astype(int)])
    return tmp_path


@pytest.mark.parametrize("name", ["tagger.onnx", "tagger.xml"])
def test_tag_shows_labels_by_the_thresholds_of_the_file(colours, exported_file, run, name):
    exported_file(name, thresholds=[0.1, 0.5, 0.999999])
    done = run("tag", "images", "--model", name)
    assert done.code == 0, done.err
    lines = dict(line.split(": ") for line in done.out.splitlines())
    assert lines["images/greenish1.png"] == "green 0.83, red 0.13"
    assert lines["images/bluish2.png"] == "-"  # 0.9998
    done = run("tag", "images", "--model", name, "--threshold", "0.5", "--json")
    found = {item["path"]: item["tags"] for item in json.loads(done.out)}
    assert [tag["label"] for tag in found["images/greenish1.png"]] == ["green"]
    assert [tag["label"] for tag in found["images/bluish2.png"]] == ["sea"]


def test_tag_names_a_common_threshold_and_chooses_labels(colours, exported_file, run):
    exported_file(thresholds=[1.0, 1.0, 1.0])
    assert "below the threshold 1. " in run("tag", "images", "--model", "tagger.onnx").err
    exported_file()
    done = run("tag", "images", "--model", "tagger.onnx", "--labels", "Blue")
    assert "images/bluish2.png: Blue 1.00" in done.out.splitlines()
    assert "images/reddish0.png: -" in done.out.splitlines()
    done = run("tag", "images", "--model", "tagger.onnx", "--labels", "dog")
    assert (done.code, "only the 3 labels of the export; got dog" in done.err) == (1, True)


def test_evaluate_and_calibrate_take_an_exported_file(colours, exported_file, run):
    file = exported_file()
    done = run("evaluate", "tagger.onnx", "labels.csv", "--json")
    assert json.loads(done.out)["summary"]["mean_average_precision"] == 1.0
    done = run("calibrate", "tagger.onnx", "labels.csv", "--out", "calibrated", "--json")
    assert done.code == 0, done.err
    file.unlink()
    again = run("evaluate", "calibrated", "labels.csv")
    assert "on 24 labelled images" in again.out
    shown = run("tag", "images", "--model", "calibrated")
    assert "images/reddish0.png: red 0.9" in shown.out
    refused = run("calibrate", "calibrated", "images", "--unlabelled", "--out", "adapted")
    assert refused.code == 0, refused.err  # an adaptation needs no text encoder


def test_an_index_of_an_exported_file_is_searched_and_updated(colours, exported_file, run):
    exported_file()
    done = run("index", "index", "images", "--model", "tagger.onnx")
    assert "24 images and 3 labels" in done.out
    found = run("search", "index", "red & !green", "--limit", "8", "--json")
    images = [item["path"] for item in json.loads(found.out)]
    assert all("reddish" in path for path in images)
    assert len(images) == 8
    shutil.copy("images/reddish0.png", "images/reddish99.png")
    again = run("index", "index", "images", "--model", "tagger.onnx")
    assert "1 added, 0 changed" in again.out
    similar = run("search", "index", "like:images/reddish99.png", "--limit", "3", "--json")
    assert "reddish" in json.loads(similar.out)[0]["path"]
    refused = run("search", "index", "--text", "a red image")
    assert "is an exported recognizer, whose encoder and labels are fixed" in refused.err


def test_fit_and_the_prefix_onnx_refuse_an_exported_file(colours, exported_file, run):
    exported_file()
    arguments = ("fit", "labels.csv", "--method", "linear", "--out", "fitted", "--model")
    for model, message in (
        ("tagger.onnx", "A recognizer that `surelabel export` wrote cannot be fitted"),
        ("onnx:tagger.onnx", "Give tagger.onnx as the model, without onnx:"),
    ):
        done = run(*arguments, model)
        assert (done.code, message in done.err) == (1, True), done.err
    assert not (colours / "fitted").exists()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("plain.onnx", {"metadata": ""}, "Give onnx:plain.onnx if the file contains an image enc"),
        ("plain.xml", {"metadata": ""}, "must be a recognizer that `surelabel export` wrote"),
        ("other.onnx", {"thresholds": [0.5, 2, 0.5]}, "thresholds in the metadata of other.onnx"),
        ("tagger.xml", {}, "tagger.bin cannot be read"),
    ],
)
def test_bad_files_are_one_line_of_error(colours, exported_file, run, name, options, message):
    file = exported_file(name, **options)
    if name == "tagger.xml":
        file.with_suffix(".bin").unlink()
    done = run("tag", "images", "--model", name)
    assert done.code == 1
    assert message in done.err
    assert len(done.err.strip().splitlines()) <= 2  # after the line of the imports


def test_a_pt2_file_and_a_missing_file_are_refused(colours, run):
    (colours / "tagger.pt2").write_bytes(b"PK")
    done = run("tag", "images", "--model", "tagger.pt2")
    assert "PyTorch loads .pt2 files with pickle, which can execute code" in done.err
    done = run("tag", "images", "--model", "./nothing.onnx")
    assert "'./nothing.onnx': no such file" in done.err
    done = run("tag", "images", "--model", "labels.csv")
    assert "an exported .onnx or .xml file; got the file labels.csv" in done.err


def test_an_exported_file_is_not_exported_again(colours, exported_file, run):
    exported_file()
    done = run("export", "tagger.onnx", "again.onnx")
    assert "tagger.onnx was exported before, and its graph is not a PyTorch module" in done.err
    assert not (colours / "again.onnx").exists()
