import csv
import json

import pytest

NAMES = ["lion", "coffee", "guitar", "rocket"]


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(source, target, truth):
    """Fill the empty cells of a table as an annotator does."""
    rows = rows_of(source)
    answers = {row["path"]: row for row in rows_of(truth)}
    for row in rows:
        answer = answers[row["path"]]
        row |= {label: answer[label] for label in NAMES if row[label] == ""}
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_the_table_goes_from_round_to_round_and_is_fitted(home, run):
    line = ["label-next", "images", "--labels", "names.txt", "--count", "12", "--out", "one.csv"]
    done = run(*line)
    assert "12 images of 24 without labels: 12 chosen at random." in done.out
    assert [row["chosen_by"] for row in rows_of(home / "one.csv")] == ["random"] * 12
    fill(home / "one.csv", home / "filled.csv", home / "labels.csv")
    done = run("label-next", "filled.csv", "--pool", "images", "--count", "10", "--out", "two.csv")
    assert "10 images of 12 without labels: 2 chosen at random, 8 by the strategy" in done.out
    rows = rows_of(home / "two.csv")
    assert [row["lion"] for row in rows][:12] == [
        row["lion"] for row in rows_of(home / "filled.csv")
    ]
    assert [row["lion"] for row in rows][12:] == [""] * 10
    fill(home / "two.csv", home / "filled-2.csv", home / "labels.csv")
    done = run("calibrate", "tiny-vit", "filled-2.csv")
    assert "uses 14 annotated rows that were chosen at random. 8 annotated rows" in done.err
    done = run("evaluate", "recognizer", "filled-2.csv")
    assert done.out.startswith("14 images, 4 labels")


def test_tasks_of_label_studio_have_the_probabilities_of_a_saved_recognizer(home, run):
    line = ["label-next", "images", "--labels", "names.txt", "--count", "3", "--model"]
    run(*line, "recognizer", "--format", "label-studio", "--out", "tasks.json")
    tasks = json.loads((home / "tasks.json").read_text())
    assert len(tasks) == 3
    assert set(tasks[0]["data"]["probabilities"]) == set(NAMES)
    result = json.loads(run(*line, "tiny-vit", "--format", "list", "--out", "a.txt", "--json").out)
    assert [chosen["path"] for chosen in result["chosen"]] == [
        *(home / "a.txt").read_text().splitlines()
    ]


def test_scores_of_another_program_are_chosen(home, run):
    names = [f"{number}.jpg" for number in range(20)]
    scores = [f"{name},0.{number:02}" for number, name in enumerate(names)]
    (home / "scores.csv").write_text("\n".join(["image,dog", *scores]))
    (home / "truth.csv").write_text("image,dog\n3.jpg,1\n4.jpg,0\n")
    line = ["label-next", "scores:scores.csv", "truth.csv", "--as", "probabilities"]
    done = run(*line, "--count", "5", "--out", "next.csv")
    assert "5 images of 18 without labels" in done.out
    rows = {row["path"]: row["dog"] for row in rows_of(home / "next.csv")}
    assert (rows["3.jpg"], rows["4.jpg"], len(rows)) == ("1", "0", 7)
    (home / "again.csv").write_text((home / "next.csv").read_text())
    done = run(*line[:2], "again.csv", *line[3:], "--count", "2", "--out", "third.csv")
    assert "5 images of earlier batches still have no labels" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["labels.csv", "--out", "x.csv"], 1, "24 rows that have labels or were chosen before"),
        (["images", "--out", "x.csv"], 1, "requires the labels to annotate; got none"),
        (["labels.csv", "--out", "labels.csv"], 1, "labels.csv must be a new file"),
        (["images", "--labels", "a", "--out", "x", "--count", "0"], 2, "0 is not in the range"),
        (
            ["images", "--labels", "path", "--out", "x.csv"],
            1,
            "must differ from the reserved column names",
        ),
        (["images", "--labels", "a", "--as", "logits", "--out", "x"], 2, "only to scores:FILE"),
        (["images", "--labels", "a", "--pool", "labels.csv", "--out", "x"], 1, "--pool requires"),
        (["missing", "--labels", "a", "--out", "x.csv"], 1, "missing"),
    ],
)
def test_mistakes_are_named(home, run, arguments, code, complaint):
    done = run("label-next", "--count", "2", *arguments)
    assert (done.code, complaint in done.err) == (code, True)
    assert not (home / "x.csv").exists()
