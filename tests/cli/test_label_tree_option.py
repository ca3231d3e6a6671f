import csv
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from surelabel.cli import main
from surelabel.data.xmp_packets import HIERARCHICAL_SUBJECT, SUBJECT
from surelabel.data.xmp_sidecar_paths import read_sidecar
from surelabel.recognizer import Recognizer
from surelabel.records import LabelTree

TREE = LabelTree({"coffee": "object", "guitar": "object", "object": "thing", "lion": "thing"})
LINEAR = ["--method", "linear", "--set", "epochs=3", "--set", "method.penalty_folds=0", "--quiet"]
TAG = ["tag", "images", "--model", "calibrated", "--quiet"]


@pytest.fixture(scope="module")
def tree_template(template, tmp_path_factory, cache_folder):
    """A folder with labels of a tree, recognizers with and without the tree, and an index."""
    home = tmp_path_factory.mktemp("tree") / "home"
    shutil.copytree(template, home, ignore=shutil.ignore_patterns("index", "recognizer"))
    (home / "tree.txt").write_text("thing > object > coffee\nobject > guitar\nthing > lion\n")
    with (home / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["object"] = str(int("1" in (row["coffee"], row["guitar"])))
        row["thing"] = str(int("1" in (row["object"], row["lion"])))
    with (home / "labels.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    outputs = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURELABEL_CACHE", str(cache_folder))
        patch.chdir(home)
        for name, line in {
            "fit": ["fit", "labels.csv", "--out", "flat", *LINEAR],
            "calibrate": [
                *("calibrate", "flat", "labels.csv", "--label-tree", "tree.txt", "--json"),
                *("--out", "calibrated", "--quiet"),
            ],
            "index": ["index", "index", "images", "--model", "calibrated", "--quiet"],
        }.items():
            done = CliRunner().invoke(main, line)
            assert done.exit_code == 0, done.output
            outputs[name] = done.stdout
    return SimpleNamespace(home=home, outputs=outputs)


@pytest.fixture
def tree_home(tree_template, monkeypatch):
    """The folder itself, whose files tests only read, as the current folder."""
    monkeypatch.chdir(tree_template.home)
    return tree_template.home


def test_calibrate_states_the_metrics_before_and_after_the_projection(tree_home, tree_template):
    metrics = json.loads(tree_template.outputs["calibrate"])["label_tree"]
    assert list(metrics) == ["leaves", "parents"]
    for group in metrics.values():
        assert list(group) == ["log_loss", "brier_skill", "ece"]
        assert all(list(values) == ["before", "after"] for values in group.values())
    recognizer = Recognizer.load("calibrated")
    assert recognizer.label_tree == TREE
    projection = recognizer.calibration.tree
    for group in ("leaves", "parents"):
        for metric, values in getattr(projection, group).items():
            assert tuple(metrics[group][metric].values()) == values
    probabilities = recognizer.predict("images").probabilities
    columns = TREE.parent_columns(recognizer.names)
    children = np.flatnonzero(columns >= 0)
    assert (probabilities[:, columns[children]] >= probabilities[:, children]).all()
    flat = Recognizer.load("flat")
    assert flat.label_tree is None


def test_fit_by_folds_prints_a_table_for_leaves_and_parents(tree_home, run, tmp_path):
    tree = ["--label-tree", "tree.txt", "--folds", "2"]
    done = run("fit", "labels.csv", "--out", tmp_path / "fitted", *tree, *LINEAR)
    assert done.code == 0, done.err
    projection = Recognizer.load(tmp_path / "fitted").calibration.tree
    lines = [line.split() for line in done.out.splitlines()]
    for group in ("leaves", "parents"):
        before, after = (f"{value:.4f}" for value in getattr(projection, group)["log_loss"])
        assert [group, "Log", "loss", before, after, "nats"] in lines
    assert "Label tree: no label is more probable than its parent." in done.out


def test_a_recognizer_without_a_tree_has_no_table_and_other_probabilities(tree_home, run):
    done = run("calibrate", "flat", "labels.csv", "--quiet", "--json")
    assert json.loads(done.out)["label_tree"] is None
    assert "Label tree" not in run("calibrate", "flat", "labels.csv", "--quiet").out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a > b\nb > a\n", "tree.txt, line 2: a label must not be its own ancestor"),
        ("dog > dog\n", "tree.txt, line 1: a label must not be its own ancestor"),
        ("thing > lion\n\nobject > lion\n", "tree.txt, line 3: a label must have one parent"),
        (
            "thing > lionn\n",
            "tree.txt, line 1: all labels must be labels of the recognizer; got 'lionn'",
        ),
        ("thing > lionn\n", "Did you mean 'lion'?"),
        ("\nthing > xyz\n", "tree.txt, line 2: all labels must be labels of the recognizer"),
        ("thing\n", "tree.txt, line 1: expected labels separated by >"),
        ('thing > "lion\n', "tree.txt, line 1: expected labels separated by >"),
        ("thing > li\x01on\n", "tree.txt, line 1: expected labels separated by >"),
        ("# thing > lion\n", "tree.txt must contain lines such as animal > dog"),
        ("thing > k\xe4fer\n", "tree.txt must be text in UTF-8"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "calibrate"])
def test_a_wrong_tree_is_refused_in_one_line(tree_home, run, tmp_path, command, text, message):
    (tmp_path / "tree.txt").write_bytes(text.encode("latin-1"))
    dataset = ["labels.csv"] if command == "fit" else ["flat", "labels.csv"]
    options = LINEAR if command == "fit" else ["--quiet"]
    out = tmp_path / "refused"
    done = run(command, *dataset, "--label-tree", tmp_path / "tree.txt", "--out", out, *options)
    assert done.code == 1
    assert message in done.err
    assert done.err.startswith("Error: ")
    assert done.err.count("\n") == 1
    assert not out.exists()


def test_a_positive_child_of_a_negative_parent_is_refused(tree_home, run, tmp_path):
    text = Path("labels.csv").read_text()
    header, *rows = [line.split(",") for line in text.splitlines()]
    row = next(row for row in rows if row[header.index("lion")] == "1")
    row[header.index("thing")] = "0"
    wrong = tmp_path / "labels.csv"
    wrong.write_text("\n".join(map(",".join, [header, *rows])))
    options = ["--images-root", tree_home, "--label-tree", "tree.txt", "--quiet"]
    done = run("calibrate", "flat", wrong, *options)
    assert done.code == 1
    assert Path(row[0]).name in done.err
    assert "got 'lion' positive and 'thing' negative" in done.err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--recalibrate", "--recalibrate cannot be combined with --label-tree"),
        ("--unlabelled", "--unlabelled with --label-tree requires a MODEL without calibration"),
    ],
)
def test_a_tree_needs_a_new_calibration(tree_home, run, option, message):
    source = "images" if option == "--unlabelled" else "labels.csv"
    done = run("calibrate", "calibrated", source, option, "--label-tree", "tree.txt")
    assert done.code == 2
    assert message in done.err


def test_a_calibration_without_labels_is_projected(tree_home, run, tmp_path):
    (tmp_path / "tree.txt").write_text("lion > bear\n")
    images = sorted(Path("images").iterdir())[:2]
    (tmp_path / "images.txt").write_text("".join(f"{os.path.abspath(path)}\n" for path in images))
    done = run(
        *(
            "calibrate",
            "tiny-vit",
            tmp_path / "images.txt",
            "--unlabelled",
            "--labels",
            "lion,bear",
        ),
        *("--set", "method.templates=a small {}", "--label-tree", tmp_path / "tree.txt"),
        *("--out", tmp_path / "out", "--quiet"),
    )
    assert done.code == 0, done.err
    assert "Label tree: no label is more probable than its parent." in done.out
    assert Recognizer.load(tmp_path / "out").calibration.tree.parent_columns == (-1, 0)


@pytest.mark.parametrize("selection", [["--threshold", "0.3"], ["--top-k", "2"], ["--best-f1"]])
def test_the_parents_of_shown_labels_are_shown(tree_home, run, selection):
    done = run(*TAG, *selection, "--json")
    shown = [{tag["label"] for tag in image["tags"]} for image in json.loads(done.out)]
    assert set().union(*shown) & set(TREE.parents)
    for labels in shown:
        assert {parent for label in labels for parent in TREE.ancestors(label)} <= labels


def test_sidecars_have_the_paths_of_labels(tree_home, run, tmp_path, monkeypatch):
    shutil.copytree("images", tmp_path / "images")
    model = os.path.abspath("calibrated")
    monkeypatch.chdir(tmp_path)
    images = sorted(os.listdir("images"))
    options = ["--sidecar", "xmp", "--threshold", "0.3"]
    assert run("tag", "images", "--model", model, *options).code == 0
    paths = set()
    for sidecar in Path("images").glob("*.xmp"):
        packet = read_sidecar(str(sidecar))
        expected = ["|".join(TREE.path(label)) for label in packet.texts(SUBJECT)]
        assert packet.texts(HIERARCHICAL_SUBJECT) == expected
        paths.update(expected)
    assert {"thing", "thing|object", "thing|object|coffee", "rocket"} <= paths
    assert run("tag", "images", "--sidecar", "xmp", "--remove").code == 0
    assert sorted(os.listdir("images")) == images


@pytest.mark.parametrize(("child", "parent"), [("coffee", "object"), ("object", "thing")])
def test_a_search_by_a_parent_finds_the_images_of_its_child(tree_home, run, child, parent):
    def images_of(label):
        done = run("search", "index", f"{label}>0.3", "--limit", "24", "--json", "--quiet")
        return {hit["path"] for hit in json.loads(done.out)}

    assert images_of(child)
    assert images_of(child) <= images_of(parent)
