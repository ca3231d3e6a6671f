import json
import re

import pytest


def test_two_models_are_compared_and_reported(home, run):
    done = run(
        *("compare", "tiny-vit", "recognizer", "labels.csv", "--report", "report"),
        *("--resamples", "20"),
    )
    assert done.code == 0, done.err
    assert done.out.startswith("A: tiny-vit. B: recognizer.\n24 images, 4 labels.\n")
    for title in ("mAP ", "mAP by image", "Brier skill", "Log loss", "ECE ", "ACE", "MCE"):
        assert f"\n{title}" in done.out
    assert "\nThe results of --json and --report contain 6 more metrics.\n" in done.out
    assert "computed from 20 resamples" in done.out
    assert "Report: report/index.html" in done.err
    held = json.loads((home / "report" / "comparison.json").read_text())
    assert held["second"]["calibration"].startswith("beta (selected by log loss) on 24 labelled")
    assert (home / "report" / "report.md").read_text().startswith("# Comparison report\n")


def test_json_has_the_values_of_evaluate(home, run):
    done = run("compare", "tiny-vit", "recognizer", "labels.csv", "--resamples", "2", "--json")
    metrics = json.loads(done.out)["metrics"]
    for model, side in (("tiny-vit", "first"), ("recognizer", "second")):
        evaluation = json.loads(run("evaluate", model, "labels.csv", "--json").out)
        found = {name: values[side] for name, values in metrics.items()}
        assert found == pytest.approx(evaluation["summary"])


def test_files_of_predictions_are_compared_without_the_images(home, run):
    for name, model in (("a.parquet", "tiny-vit"), ("b.csv", "recognizer")):
        line = ["tag", "images", "--model", model, "--labels", "names.txt", "--out", name]
        assert run(*line).code == 0
    line = ["compare", "a.parquet", "b.csv", "labels.csv", "--resamples", "2", "--json"]
    with_images = json.loads(run(*line).out)
    for image in (home / "images").iterdir():
        image.unlink()
    assert json.loads(run(*line).out) == with_images
    assert with_images["left_out"]["labels_of_first_only"] == []


def test_common_images_and_labels_are_compared_and_the_others_counted(home, run):
    images = sorted((home / "images").iterdir())[:20]
    run("tag", *images, "--model", "tiny-vit", "--labels", "lion, coffee, bear", "--out", "a.csv")
    done = run("compare", "a.csv", "recognizer", "labels.csv", "--resamples", "2")
    assert "\n20 images, 2 labels.\n" in done.out
    assert "4 annotated images without a prediction of A" in done.out
    assert "1 label of A only (bear); 2 labels of B only (guitar, rocket)." in done.out


def test_a_file_against_itself_has_differences_of_zero(home, run):
    run("tag", "images", "--model", "tiny-vit", "--labels", "names.txt", "--out", "a.parquet")
    done = run("compare", "a.parquet", "a.parquet", "labels.csv", "--resamples", "2", "--json")
    for values in json.loads(done.out)["metrics"].values():
        difference = values["difference"]
        assert [difference[end] for end in ("value", "low", "high")] == [0, 0, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "compare labels.csv tiny-vit labels.csv",
            r"labels.csv must contain predictions.*give scores:labels.csv and --as KIND",
        ),
        ("compare nowhere/ tiny-vit labels.csv", r"no such folder"),
        ("compare names.txt tiny-vit labels.csv", r"requires a folder, the name of"),
        ("compare tiny-vit recognizer nowhere.csv", r"nowhere.csv does not exist"),
        (
            "compare tiny-vit recognizer labels.csv names.txt",
            r"LABELS can be given only after scores",
        ),
        ("compare tiny-vit recognizer labels.csv --as logits", r"--as applies only to scores:FILE"),
        ("compare tiny-vit recognizer labels.csv --resamples 1", r"1 is not in the range"),
        ("compare tiny-vit recognizer labels.csv --report images", r"The folder of a report"),
        ("compare tiny-vit scores:names.txt labels.csv", r"requires --as"),
    ],
)
def test_bad_input_is_refused_in_one_line(home, run, line, message):
    done = run(*line.split())
    assert (done.code != 0, done.out) == (True, "")
    assert re.search(message, done.err)
