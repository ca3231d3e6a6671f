import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import surelabel as sl
from surelabel.cli import main
from surelabel.data import FORMATS, read_label_entries

NAMES = ["dog", "cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with scores of 300 images, labels of 120 of them, and a recognizer."""
    home = tmp_path_factory.mktemp("scores")
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=4, size=(300, 2))
    targets = (rng.random((300, 2)) < 1 / (1 + np.exp(-logits))).astype(int)
    names = [f"{row}.jpg" for row in range(300)]
    write(home / "scores.csv", names, logits)
    write(home / "truth.csv", names[:120], targets[:120])
    write(home / "fit.csv", names[260:], targets[260:])
    for file, rows in (("a.npz", slice(120)), ("b.npz", slice(120, 300))):
        arrays = {"features": logits[rows], "names": np.array(NAMES), "targets": targets[rows]}
        np.savez(home / file, **arrays)
    np.savez(home / "new.npz", features=logits + 0.01)
    line = "calibrate scores:scores.csv fit.csv --as logits --out model --set calibrator.name=platt"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    return home


@pytest.fixture
def home(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def write(path, names, rows):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", *NAMES])
        table.writerows([name, *row] for name, row in zip(names, rows, strict=True))


def test_scores_are_labelled_and_the_file_is_read_again(home, run):
    done = run(
        *("auto-label", "scores:scores.csv", "--model", "model", "--calibration", "truth.csv"),
        *("--max-wrong", "0.1", "--out", "accepted.csv"),
    )
    assert done.code == 0, done.err
    header, *lines = done.out.splitlines()
    assert header.split() == [
        "label",
        "predicted",
        "images",
        "accepted",
        "share",
        "calibration",
        "wrong",
    ]
    assert lines[0].split()[:2] == ["dog", "positive"]
    assert "(140 images, 120 calibration images)." in done.out
    assert "because they are used for fitting or calibration: 160." in done.out
    assert "at most 10 %" in done.out
    assert done.out.endswith("Written to accepted.csv.\n")
    labelled = read_label_entries("accepted.csv")
    assert list(labelled.paths) == [f"{row}.jpg" for row in range(120, 260)]
    assert 0 < labelled.known.sum() < labelled.known.size
    refused = run("evaluate", "model", "scores:scores.csv", "accepted.csv")
    assert refused.code == 1
    assert "chosen at random; got none" in refused.err


def test_numbers_are_printed_as_json(home, run):
    command = ("auto-label", "scores:scores.csv", "--model", "model", "--calibration", "truth.csv")
    value = json.loads(run(*command, "--json").out)
    assert value["max_wrong"] == 0.05
    assert value["accepted"] + value["for_people"] == 2 * 140
    assert [row["target"] for row in value["by_label"]] == [1, 0, 1, 0]
    pooled = json.loads(run(*command, "--json", "--pooled").out)
    assert pooled["accepted"] < value["accepted"]


def test_vectors_and_images_are_labelled(home, run):
    settings = ("--set", "epochs=2", "--set", "calibrator.name=platt")
    done = run("fit", "b.npz", "--method", "linear", *settings, "--folds", "2", "--out", "linear")
    assert done.code == 0, done.err
    command = ("auto-label", "b.npz", "--model", "linear", "--calibration", "a.npz")
    refused = run(*command)
    assert refused.code == 1
    assert "must be new, that is, not used for the fit or the calibration" in refused.err
    refused = run(*command[:-1], "b.npz")
    assert "got 180 rows of the fit or an earlier calibration" in refused.err
    done = run("auto-label", "new.npz", *command[2:], "--max-wrong", "0.2")
    assert done.code == 0, done.err
    assert "300 rows, 120 calibration rows" in done.out
    assert "No file was written. Add --out FILE.csv" in done.out


def test_calibration_scores_can_be_in_another_file(home, run):
    with open("scores.csv") as file:
        header, *rows = file.readlines()
    (home / "new.csv").write_text("".join([header, *rows[120:]]))
    command = ("auto-label", "scores:new.csv", "--model", "model", "--calibration", "truth.csv")
    assert run(*command).code == 1  # no image of new.csv has labels
    done = run(*command, "--calibration-scores", "scores:scores.csv")
    assert done.code == 0, done.err
    assert "(140 images, 120 calibration images)." in done.out
    assert "because they are used for fitting or calibration: 40." in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Missing option '--calibration'"),
        (("--calibration", "missing.csv"), "missing.csv does not exist"),
        (("--calibration", "fit.csv"), "40 images of the fit or an earlier"),
        (("--calibration", "truth.csv", "--max-wrong", "0"), "is not in the range 0<x<1"),
        (("--calibration", "truth.csv", "--max-wrong", "nan"), "a finite number; got nan"),
        (("--calibration", "truth.csv", "--max-wrong", "0.001"), "requires at least 368"),
        (("--calibration", "truth.csv", "--labels", "tiger"), "tiger"),
    ],
)
def test_bad_input_is_refused_with_one_line(home, run, options, message):
    done = run("auto-label", "scores:scores.csv", "--model", "model", *options)
    assert done.code in (1, 2)
    assert message in done.err


def test_images_need_no_scores(home, run):
    scenes = sl.collection("scenes-80", split="test")
    (home / "images.txt").write_text("\n".join(map(str, scenes.paths[:50])) + "\n")
    FORMATS["csv"].write(scenes.take(range(25)), home / "scenes.csv")
    command = ("auto-label", "images.txt", "--calibration", "scenes.csv")
    done = run(*command, "--labels", "lion, guitar", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["images"] == 25
    refused = run("auto-label", "images.txt", "--model", "model", "--calibration", "truth.csv")
    assert refused.code == 1
    assert "model requires scores of the calibration images" in refused.err
