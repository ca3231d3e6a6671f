"""Tables of scores and recognizers of scores are compared as `evaluate` measures them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from surelabel.cli import main

NAMES = ["dog", "cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with two tables of scores, annotations and a calibrated recognizer."""
    home = tmp_path_factory.mktemp("compared")
    random = np.random.default_rng(0)
    targets = random.random((60, 2)) < 0.4
    for name, count in (("one", 60), ("two", 50)):
        logits = 3 * targets - 2 + random.normal(size=(60, 2))
        write(home / name / "scores.csv", 1 / (1 + np.exp(-logits[:count])))
    write(home / "labels" / "truth.csv", targets[:55].astype(int))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        invoke(
            "calibrate scores:one/scores.csv labels/truth.csv --as probabilities --out model "
            "--set calibrator.name=platt"
        )
    return home


def write(path, rows):
    path.parent.mkdir()
    lines = [f"{row}.jpg,{a},{b}" for row, (a, b) in enumerate(rows.tolist())]
    path.write_text("\n".join(["image,dog,cat", *lines]) + "\n")


def invoke(line):
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    return done


def values(line):
    return json.loads(invoke(f"{line} --resamples 2 --quiet --json").stdout)


@pytest.fixture
def home(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_two_tables_of_scores_are_compared_on_common_annotated_images(home):
    found = values(
        "compare scores:one/scores.csv scores:two/scores.csv labels/truth.csv --as probabilities"
    )
    assert found["images"] == 50
    assert found["left_out"]["images_without_first"] == 0
    assert found["left_out"]["images_without_second"] == 5
    assert found["metrics"].keys() >= {"mean_average_precision", "brier"}


def test_a_table_is_compared_with_a_recognizer_of_scores_with_cross_fitted_probabilities(home):
    line = "scores:one/scores.csv labels/truth.csv"
    found = values(
        "compare scores:one/scores.csv model scores:one/scores.csv labels/truth.csv "
        "--as probabilities"
    )
    summary = json.loads(invoke(f"evaluate model {line} --quiet --json").stdout)["summary"]
    assert "cross-fitted" in found["second"]["calibration"]
    assert found["metrics"]["log_loss"]["second"] == pytest.approx(summary["log_loss"])


def test_predictions_of_scores_are_found_by_the_names_of_the_annotations(home, tmp_path):
    file = tmp_path / "predictions.parquet"
    invoke(f"tag scores:two/scores.csv --model model --out {file}")
    found = values(f"compare {file} {file} labels/truth.csv")
    assert (found["images"], found["left_out"]["images_without_first"]) == (50, 5)


def test_vectors_of_an_archive_are_compared(home, tmp_path):
    random = np.random.default_rng(0)
    targets = random.integers(0, 2, (40, 2))
    vectors = np.hstack([targets + random.normal(size=(40, 2)), np.ones((40, 1))])
    np.savez(tmp_path / "vectors.npz", features=vectors, targets=targets, names=NAMES)
    line = f"fit {tmp_path}/vectors.npz --method linear --set epochs=2 --out {tmp_path}"
    for name in ("a", "b"):
        invoke(f"{line}/{name} --seed {ord(name)}")
    found = values(f"compare {tmp_path}/a {tmp_path}/b {tmp_path}/vectors.npz")
    assert (found["images"], found["labels"]) == (40, 2)
    file = tmp_path / "a.csv"
    invoke(f"tag {tmp_path}/vectors.npz --model {tmp_path}/a --out {file}")
    found = values(f"compare {file} {tmp_path}/a {tmp_path}/vectors.npz")
    assert found["images"] == 40
    assert found["metrics"]["average_precision"]["difference"]["value"] == pytest.approx(0)
    found = values(f"compare {file} {file} {tmp_path}/vectors.npz")
    assert found["images"] == 40
