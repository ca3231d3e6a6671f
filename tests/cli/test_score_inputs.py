"""A table of scores of another program is calibrated, tagged, evaluated, indexed and searched."""

import csv
import json
import os
import re

import numpy as np
import pytest
from click.testing import CliRunner

from surelabel.cli import main

NAMES = ["dog", "cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with scores of 60 images, labels of 50, and a calibrated recognizer."""
    home = tmp_path_factory.mktemp("scores")
    random = np.random.default_rng(0)
    targets = random.random((60, 2)) < 0.4
    scores = 1 / (1 + np.exp(-(4 * targets - 4 + random.normal(size=(60, 2)))))
    names = [f"{row}.jpg" for row in range(60)]
    write(home / "scores.csv", ["image", *NAMES], names, scores)
    order = random.permutation(60)[:50]
    write(home / "truth.csv", ["file", "cat", "dog"], np.array(names)[order], targets[order, ::-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("SURELABEL_CACHE", str(home / "cache"))
        done = invoke(
            "calibrate scores:scores.csv truth.csv --as probabilities --out model "
            "--set calibrator.name=platt --json"
        )
    return home, json.loads(done.stdout)


def write(path, header, names, rows):
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows([name, *row] for name, row in zip(names, rows.astype(float), strict=True))


def invoke(line, code=0):
    done = CliRunner().invoke(main, line.split(" ") if isinstance(line, str) else line)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def home(folder, monkeypatch):
    monkeypatch.chdir(folder[0])
    return folder[0]


def test_a_calibration_is_measured_with_cross_fitted_probabilities(folder):
    result = folder[1]
    assert result["measured_on"] == "the calibration dataset, with cross-fitted probabilities"
    assert result["after"]["summary"]["log_loss"] < result["before"]["summary"]["log_loss"]


def test_tables_become_probabilities_and_a_search(home, tmp_path):
    out = tmp_path / "p.csv"
    text = invoke(f"tag scores:scores.csv --model model --precision 0.9 --out {out}").output
    assert "The expected precision is" in text
    assert out.read_text().startswith('"path","score:dog","logit:dog","probability:dog"')
    text = invoke("evaluate model scores:scores.csv truth.csv").output
    assert "cross-fitted probabilities of 50 of 50 images" in text
    invoke(f"index {tmp_path / 'index'} scores:scores.csv --model model")
    hits = json.loads(invoke(["search", str(tmp_path / "index"), "dog & !cat", "--json"]).stdout)
    assert len(hits) == 20
    assert os.path.dirname(hits[0]["path"]) == str(home)


def test_scores_are_evaluated_without_calibration_and_fitted_on(home, tmp_path):
    text = invoke("evaluate scores:scores.csv truth.csv --as probabilities").output
    assert "50 images, 2 labels" in text
    command = "fit scores:scores.csv truth.csv --as probabilities --method linear --set epochs=2"
    invoke(f"{command} --out {tmp_path / 'fitted'}")
    text = invoke(f"tag scores:scores.csv --model {tmp_path / 'fitted'}").output
    assert "0.jpg: " in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "calibrate scores:scores.csv truth.csv",
            "scores:scores.csv requires --as; got none. Add --as logits",
        ),
        ("fit scores:scores.csv truth.csv --out x", "requires --as; got none"),
        ("fit scores:scores.csv --as logits --out x", "requires one file with labels.*got 0"),
        ("calibrate scores:lost.csv truth.csv --as logits", r"no such file 'lost\.csv'"),
        (
            "calibrate scores:scores.csv scores:scores.csv --as logits",
            "Only one argument can be scores",
        ),
        ("calibrate scores.csv truth.csv", "or scores:FILE for a table of scores"),
        ("evaluate model scores:scores.csv", "requires labels of its images; got none"),
        ("evaluate model truth.csv", r"model requires scores of images.*scores:FILE truth\.csv"),
        ("evaluate model scores:scores.csv truth.csv --as logits", "--as must be probabilities"),
        (
            "evaluate tiny-vit scores:scores.csv truth.csv",
            "requires a model that was calibrated or",
        ),
        ("tag scores:scores.csv", "requires a model that was calibrated or fitted.*got tiny-vit"),
        (
            "tag scores:scores.csv scores.csv --model model",
            "must be given as one scores:FILE; got 2 arg",
        ),
        ("tag scores:truth.csv --model model --ignore cat", r"got 1 columns \(missing: cat\)"),
        ("index x scores:scores.csv", "requires a model that was calibrated or fitted"),
    ],
)
def test_what_is_missing_is_said_in_one_line(home, line, message):
    output = invoke(line, code=1).output
    error = next(text for text in output.splitlines() if text.startswith("Error: "))
    assert re.search(message, error), output
    assert output.splitlines()[-1] == error


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("calibrate tiny-vit truth.csv --as logits", "--as applies only to scores:FILE"),
        ("calibrate tiny-vit truth.csv scores.csv", r"only after scores:FILE; got scores\.csv"),
        ("tag scores.csv --image-column image", "--image-column and --ignore apply only to"),
        (
            "tag scores:scores.csv --model model --gallery g.html",
            r"--gallery can be given only for image files; got scores:scores\.csv",
        ),
        ("calibrate model scores:scores.csv --unlabelled", "--unlabelled requires images; got sc"),
    ],
)
def test_options_of_other_inputs_are_refused(home, line, message):
    assert re.search(message, invoke(line, code=2).output)


def test_labels_that_are_no_columns_are_refused(home, tmp_path):
    (tmp_path / "t.csv").write_text("file,zebra\n0.jpg,1\n1.jpg,0\n")
    line = f"calibrate scores:scores.csv {tmp_path / 't.csv'} --as probabilities"
    assert "got the labels zebra and the columns dog, cat" in invoke(line, code=1).output
