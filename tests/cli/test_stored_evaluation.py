import csv
import json
import shutil

import pytest


@pytest.fixture
def tagged(home, run):
    """Write predictions of all images to a file, and to a folder as two shards."""
    line = ["tag", "images", "--model", "recognizer"]
    assert run(*line, "--out", "tags.parquet").code == 0
    for number in (1, 2):
        assert run(*line, "--shard", f"{number}/2", "--out", "tags").code == 0
    return home


def test_predictions_have_the_metrics_of_the_recognizer(tagged, run):
    of_recognizer = json.loads(run("evaluate", "recognizer", "labels.csv", "--json").out)
    shutil.rmtree(tagged / "images")  # no image is read
    for predictions in ("tags.parquet", "tags"):
        done = run("evaluate", predictions, "labels.csv", "--json")
        found = json.loads(done.out)
        assert "Evaluated: 24 images.\n" in done.err
        assert found["calibration"] == of_recognizer["calibration"]
        for name in ("summary", "noise_floor", "class_means"):
            assert found[name] == pytest.approx(of_recognizer[name], abs=1e-5, nan_ok=True)


def test_images_that_only_one_has_are_counted_and_named_in_one_line(tagged, run):
    with (tagged / "labels.csv").open() as file:
        rows = list(csv.reader(file))
    (tagged / "folder").mkdir()
    with (tagged / "folder" / "part.csv").open("w", newline="") as file:
        csv.writer(file).writerows([*rows[:20], ["images/none.jpg", *rows[1][1:]]])
    done = run("evaluate", "tags", "folder/part.csv", "--images-root", ".")
    line = next(line for line in done.err.splitlines() if line.startswith("Evaluated: "))
    assert line.startswith("Evaluated: 19 images; not evaluated: 1 labelled image without ")
    assert "such as ./images/none.jpg; not evaluated: 5 predicted images without labels, " in line
    assert done.out.startswith("19 images, 4 labels; ")


def test_a_report_and_searches_are_computed_from_predictions(tagged, run):
    line = ["evaluate", "tags", "labels.csv", "--report", "report"]
    done = run(*line, "--search", "lion & !guitar", "--retrieval", "--max-literals", "1", "--json")
    assert done.code == 0
    assert [search["query"] for search in json.loads(done.out)["searches"]] == ["lion & !guitar"]
    assert (tagged / "report" / "index.html").exists()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "tags labels.csv --method tiles --set a=1",
            "--method, --set can be given only for a recognizer",
        ),
        ("tags labels.csv --labels lion", "--labels can be given only for a recognizer"),
        ("tags labels.csv --unseen lion", "--unseen can be given only for a recognizer"),
        ("tags labels.csv --captions", "--captions can be given only for a recognizer"),
        ("tags labels.csv --as logits", "--as applies only to scores:FILE"),
        ("tags labels.csv names.txt", "LABELS can be given only after scores:FILE; got names.txt"),
        ("tags scores:labels.csv", "requires a file of labels; got the scores scores:labels"),
        ("tags labels.csv --max-literals 2", "Add --retrieval"),
        ("tags labels.csv --search fish", "fish"),
        ("tags labels.csv --report images", "The folder of a report"),
        ("tags wrong.csv", "the annotated labels a, b, c, d. Give"),
        ("tags moved.csv", "must share at least one image path"),
        ("labels.csv labels.csv", "labels.csv must contain predictions of surelabel"),
        ("half labels.csv", "12 missing"),
    ],
)
def test_bad_input_is_one_line(tagged, run, line, text):
    labels = (tagged / "labels.csv").read_text()
    header = labels.splitlines()[0]
    (tagged / "wrong.csv").write_text(labels.replace(header, "path,a,b,c,d"))
    (tagged / "moved.csv").write_text(labels.replace("images/", "moved/"))
    shutil.copytree(tagged / "tags", tagged / "half")
    min((tagged / "half").glob("part-*")).unlink()
    done = run("evaluate", *line.split())
    assert done.code in (1, 2)
    (message,) = [part for part in done.err.splitlines() if part.startswith("Error: ")]
    assert text in message
