import json

from surelabel.evaluation import FLOORS


def test_evaluation_prints_every_metric_and_writes_a_report(home, run):
    done = run("evaluate", "recognizer", "labels.csv", "--report", "report")
    assert done.code == 0
    for title in ("mAP ", "mAP by picture", "Brier skill", "Log loss", "ECE ", "ACE", "MCE"):
        assert f"\n{title}" in done.out
    assert all(f"{what} at k" in done.out for what in ("Precision", "Recall", "F1"))
    assert "Labels where a metric is undefined: none." in done.out
    assert (home / "report" / "index.html").exists()
    assert "Report: report/index.html" in done.err


def test_evaluation_as_json_says_what_chance_alone_gives(home, run):
    found = json.loads(run("evaluate", "recognizer", "labels.csv", "--json").out)
    assert (found["pictures"], found["calibration"]) == (24, "platt on 24 labelled pictures")
    assert set(found["floor"]) == set(FLOORS)
    assert 0 <= found["summary"]["mean_average_precision"] <= 1


def test_an_encoder_is_evaluated_for_the_labels_of_the_file(home, run):
    done = run("evaluate", "tiny-vit", "labels.csv")
    assert done.out.startswith("24 pictures, 4 labels; ")


def test_undefined_labels_are_counted(home, run):
    line = ["evaluate", "tiny-vit", "labels.csv", "--labels", "lion, bear"]
    assert "average_precision 1" in run(*line).out


def test_places_in_pictures_are_looked_for_only_for_a_report(home, run, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(home / "own-cache"))

    def kept(*more):
        assert run("evaluate", "recognizer", "labels.csv", *more).code == 0
        return json.loads(run("cache", "--json").out)["entries"]

    assert kept() < kept("--report", "report")


def test_all_pictures_that_cannot_be_read_are_named_at_the_end(home, run):
    for picture in sorted((home / "pictures").iterdir())[:5]:
        picture.write_bytes(b"")
    done = run("evaluate", "recognizer", "labels.csv")
    assert done.out.startswith("19 pictures")
    assert done.err.count(": empty file") == 5
