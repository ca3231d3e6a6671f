"""Options of label tables in every command that takes a label file, and the two lines on it."""

import csv
import json
import shutil

import pytest

from surelabel.recognizer import Recognizer

OPTIONS = ["--image-column", "photo", "--ignore", "split", "--minus-one", "negative"]
OPTIONS += ["--zero", "unknown", "--images-root", "images"]


@pytest.fixture
def voc(home):
    """Write a table with -1 for negative targets, and return the number of rows."""
    with (home / "labels.csv").open() as file:
        header, *rows = csv.reader(file)
    with (home / "voc.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", "photo", "split", *header[1:]])
        for number, (path, *targets) in enumerate(rows):
            name = path.removeprefix("images/").rpartition(".")[0]
            values = [1 if target == "1" else -1 for target in targets]
            writer.writerow([number, name, "test", *(values if number else [0] * len(values))])
    return len(rows)


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "voc.csv", "--out", "r", "--method", "linear", "--set", "epochs=1"],
        ["calibrate", "tiny-vit", "voc.csv", "--test", "voc.csv"],
        ["evaluate", "recognizer", "voc.csv", "--search", "lion"],
    ],
    ids=lambda command: command[0],
)
def test_each_command_reads_the_table_and_says_how(voc, run, command):
    done = run(*command, *OPTIONS)
    assert done.code == 0, done.err
    columns, counts = done.err.splitlines()[:2]
    assert columns == (
        "voc.csv: images in 'photo'; one column per label, where -1 is negative and 0 is unknown; "
        "ignored: 'split'; skipped as row numbers: the first column, which has no name; "
        "4 labels: lion, coffee, guitar, rocket."
    )
    assert counts.startswith(f"{voc} images; targets: ")
    assert counts.endswith(" negative, 4 unknown.")
    assert done.err.count("voc.csv: images in") == command.count("voc.csv")


def test_each_refusal_names_the_option_that_is_typed_next(voc, run):
    typed = ["--images-root", "images"]
    for number in (0, 2, 4, 6):
        done = run("evaluate", "tiny-vit", "voc.csv", *typed)
        assert done.code == 1
        assert " ".join(OPTIONS[number : number + 2]) in done.err
        assert "Python" not in done.err
        typed += OPTIONS[number : number + 2]
    assert run("evaluate", "tiny-vit", "voc.csv", *typed).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "tiny-vit", "scenes-80:test", "--zero", "unknown"],
        ["fit", "images", "--method", "tailor", "--labels", "lion", "--out", "r", "--ignore", "x"],
        ["calibrate", "tiny-vit", "images", "--unlabelled", "--separator", "pipe"],
    ],
    ids=lambda command: command[0],
)
def test_options_of_tables_are_refused_for_other_data(home, run, command):
    done = run(*command)
    assert done.code == 2
    assert "table" in done.err


def test_columns_without_names_can_be_given(home, run):
    header, *rows = (home / "labels.csv").read_text().splitlines()
    lines = [header.removeprefix("path") + ",", *(f"{row},x" for row in rows)]
    (home / "index.csv").write_text("\n".join(lines))
    refused = run("evaluate", "recognizer", "index.csv")
    assert "add --image-column ''." in refused.err
    assert run("evaluate", "recognizer", "index.csv", "--image-column", "").code == 1
    (home / "index.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines))
    assert run("evaluate", "recognizer", "index.csv", "--image-column", "").code == 0


def test_one_column_of_labels_gives_the_metrics_of_a_column_per_label(home, run):
    with (home / "labels.csv").open() as file:
        header, *rows = csv.reader(file)
    rows[0][1:] = "1111"
    with (home / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    with (home / "tags.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["filename", "tags"])
        for path, *targets in rows:
            labels = [n for n, target in zip(header[1:], targets, strict=True) if target == "1"]
            writer.writerow([path, "|".join(labels)])
    done = run("evaluate", "recognizer", "tags.csv", "--json")
    assert "labels separated by '|' in 'tags'; 4 labels: coffee, guitar, lion, rocket." in done.err
    from_columns = run("evaluate", "recognizer", "labels.csv", "--json", "--quiet")
    assert "images in" not in from_columns.err
    assert json.loads(done.out)["summary"] == json.loads(from_columns.out)["summary"]


@pytest.mark.filterwarnings("ignore:.*tokens that tiny-vit was not trained on")
def test_odd_labels_survive_from_a_table_to_a_query(home, run):
    names = ["a,b", "either|or", 'say "hi"', "\u200fשלום\u200f"]
    with (home / "labels.csv").open() as file:
        _, *rows = csv.reader(file)
    with (home / "odd.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["path", *names], *rows])
    done = run("calibrate", "tiny-vit", "odd.csv", "--out", "odd")
    assert done.code == 0, done.err
    assert (home / "odd" / "names.txt").read_text(encoding="utf-8").splitlines() == [
        name.replace("|", r"\|") for name in names
    ]
    assert Recognizer.load("odd").names == names
    shutil.rmtree("index")
    assert run("index", "index", "images", "--model", "odd").code == 0
    for name in names:
        query = '"' + name.replace('"', '""') + '"'
        hits = json.loads(run("search", "index", query, "-k", "2", "--json").out)
        assert [list(hit["terms"]) for hit in hits] == [[name]] * 2
    found = json.loads(run("search", "index", "שלום", "-k", "2", "--json").out)
    assert [hit["path"] for hit in found] == [hit["path"] for hit in hits]
    assert run("evaluate", "odd", "odd.csv", "--search", '!"either|or"').code == 0
