import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from surelabel.data import collection
from surelabel.data.labels import read_labels
from surelabel.evaluation import evaluate_unseen_classes
from surelabel.recognizer import Recognizer

SEEN, UNSEEN = ["lion", "coffee", "guitar"], ["rocket", "zebra"]
IMAGES = 40


def written(place, images, names):
    columns = [list(images.names).index(name) for name in names]
    with Path(place).open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["path", *names])
        rows.writerows(
            [path, *row[columns].astype(int)]
            for path, row in zip(images.paths, images.targets, strict=True)
        )


@pytest.fixture(scope="module")
def images():
    """Some that show one of the names, to learn from and to be asked about."""

    def some(split):
        every = collection("scenes-80", split=split)
        columns = [list(every.names).index(name) for name in [*SEEN, *UNSEEN]]
        rows = every.targets[:, columns].any(axis=1).nonzero()[0][:IMAGES]
        return every.take(rows)

    return some("train"), some("test")


@pytest.fixture
def fitted(tmp_path, monkeypatch, images, run):
    """A folder with labels, names, and a recognizer that was fitted on the seen ones."""
    monkeypatch.chdir(tmp_path)
    written("train.csv", images[0], SEEN)
    written("test.csv", images[1], [*UNSEEN, *SEEN])
    Path("unseen.txt").write_text("\n".join(UNSEEN) + "\n\n")
    fit = ["fit", "train.csv", "--method", "clip_adapter", "--out", "model"]
    assert run(*fit, "--set", "epochs=2", "--quiet").code == 0
    return tmp_path


LINE = ["evaluate", "model", "test.csv", "--unseen", "unseen.txt"]


def test_seen_and_unseen_names_are_told_apart(fitted, run):
    done = run(*LINE)
    assert done.code == 0
    assert done.out.startswith(f"{IMAGES} images, 5 labels; ")
    assert "\nClasses: 3 seen, 2 unseen.\n" in done.out
    for title in (
        "Precision at 3",
        "F1 at 5",
        "mAP",
        "mAP, with AP = 0 for labels without positives",
    ):
        assert re.search(rf"\n{title} +\d+\.\d % +\d+\.\d % +\d+\.\d % +\d+\.\d %\n", done.out)
    test = read_labels("test.csv")
    with_one = int(test.targets[:, :2].any(axis=1).sum())
    assert re.search(rf"\nImages +{with_one} +{IMAGES}\n", done.out)
    assert f"the {with_one} images with a positive unseen class. On all {IMAGES} images" in done.out
    assert re.search(r"\n +seen +noise floor +unseen +noise floor +unit\n", done.out)
    assert re.search(r"\nECE( +\d+\.\d+){4} +points\n", done.out)


def test_json_holds_what_the_library_says(fitted, run):
    found = json.loads(run(*LINE, "--json").out)
    assert found["images"] == IMAGES
    said = Recognizer.load("model").with_names([*SEEN, *UNSEEN]).predict(read_labels("test.csv"))
    targets = read_labels("test.csv").targets[:, [2, 3, 4, 0, 1]]
    own = evaluate_unseen_classes(said.scores, targets, range(3), None, said.probabilities)
    printed = found["open_vocabulary"]
    for name in ("zsl", "zsl_all_images", "gzsl"):
        for kind in ("achieved", "perfect_ranking"):
            of, by = printed[name][kind], getattr(getattr(own, name), kind)
            assert of["micro"]["3"]["f1"] == by.micro[3].f1
            assert of["macro_zero_filled"]["5"]["f1"] == by.macro_zero_filled[5].f1
            assert of["mean_average_precision_zero_filled"] == by.mean_average_precision_zero_filled
    assert printed["metrics_by_group"]["ece"] == own.metrics_by_group["ece"]
    assert set(printed["noise_floor"]) == {"ece", "ece_of_candidates"}


def test_scores_that_nothing_calibrated_are_only_ranked(fitted, run):
    done = run("fit", "train.csv", "--method", "clip_adapter", "--loss", "ranking", "--out", "raw")
    assert done.code == 0
    line = ["evaluate", "raw", *LINE[2:]]
    assert "\nmAP " in run(*line).out
    assert list(json.loads(run(*line, "--json").out)["open_vocabulary"]["metrics_by_group"]) == [
        "mean_average_precision"
    ]


def test_an_encoder_stands_beside_with_all_other_labels_as_seen(fitted, run):
    done = run("evaluate", "tiny-vit", *LINE[2:])
    assert "\nClasses: 3 seen, 2 unseen.\n" in done.out
    chosen = run("evaluate", "tiny-vit", *LINE[2:], "--labels", "lion, coffee")
    assert "\nClasses: 2 seen, 2 unseen.\n" in chosen.out


def test_searches_and_the_report_know_the_new_names(fitted, run):
    done = run(*LINE, "--search", "rocket & !lion", "--report", "report")
    assert done.code == 0
    assert "rocket & !lion" in done.out
    assert "zebra" in (fitted / "report" / "index.html").read_text()


def test_names_may_be_given_in_words_and_by_another_spelling(fitted, run):
    done = run(*LINE[:3], "--unseen", "spaceship|rocket")
    assert "\nClasses: 3 seen, 1 unseen.\n" in done.out
    printed = json.loads(run(*LINE[:3], "--unseen", "ROCKET", "--json").out)
    assert printed["open_vocabulary"]["zsl"]["labels_without_positives"] == 0


@pytest.mark.parametrize(
    ("unseen", "message"),
    [
        ("zebra, Lion", "either seen or unseen; got 'lion' in both lists"),
        ("zebra, pear", "'zebra', 'lion', 'coffee', 'guitar' without 'pear'. Use the labels of"),
        (" ,", "Expected at least one label; got none"),
        ("zebra, ZEBRA", "got 'ZEBRA' on line 1 and again on line 2"),
        ("no-such-file.txt", "no-such-file.txt cannot be read: No such file"),
    ],
)
def test_names_that_cannot_be_unseen_are_refused_in_one_line(fitted, run, unseen, message):
    done = run(*LINE[:3], "--unseen", unseen)
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_method_with_fixed_labels_is_an_error(fitted, run):
    assert run("fit", "train.csv", "--method", "linear", "--out", "fixed").code == 0
    done = run("evaluate", "fixed", *LINE[2:])
    assert (done.code, done.out) == (1, "")
    assert "linear supports only the labels of the fit" in done.err


def test_seen_names_of_a_saved_recognizer_are_its_own(fitted, run):
    done = run(*LINE, "--labels", "lion, apple")
    assert (done.code, done.out) == (2, "")
    assert "--labels would replace the seen classes of the saved recognizer" in done.err


def test_without_the_option_nothing_is_said_of_unseen_names(fitted, run):
    done = run("evaluate", "model", "test.csv", "--json")
    assert "open_vocabulary" not in json.loads(done.out)
    assert np.isfinite(json.loads(done.out)["summary"]["mean_average_precision"])


def test_a_report_shows_seen_beside_unseen_names(fitted, run):
    assert run(*LINE, "--report", "shown").code == 0
    assert '<section id="unseen">' in Path("shown/index.html").read_text(encoding="utf-8")
