import json
import re

from surelabel import Recognizer
from surelabel.evaluation import NOISE_FLOOR_METRICS
from surelabel.recognizer import operating_point


def test_evaluation_prints_the_main_metrics_and_writes_a_report(home, run):
    done = run("evaluate", "recognizer", "labels.csv", "--report", "report")
    assert done.code == 0
    for title in ("mAP ", "mAP by image", "Brier skill", "Log loss", "ECE ", "ACE", "MCE"):
        assert f"\n{title}" in done.out
    assert all(f"{what} at k" in done.out for what in ("Precision", "Recall", "F1"))
    assert "Number of labels for which a metric is undefined: none." in done.out
    assert "Adaptive ECE" not in done.out
    assert re.search(r"\nThe results of --json and --report contain \d+ more metrics\.\n", done.out)
    page = (home / "report" / "index.html").read_text()
    assert "validation record of the recognizer, which was computed from 24 images" in page
    assert "Report: report/index.html" in done.err
    held = json.loads((home / "report" / "evaluation.json").read_text())["operating_points"]
    recognizer = Recognizer.load("recognizer")
    thresholds = operating_point(recognizer, "precision", at_least=0.9).values
    (point,) = [point for point in held["points"] if point["option"] == "--precision 0.9"]
    in_report = [point["per_class"][name]["threshold"] for name in recognizer.names]
    assert in_report == thresholds.tolist()


def test_evaluation_as_json_has_the_noise_floor(home, run):
    found = json.loads(run("evaluate", "recognizer", "labels.csv", "--json").out)
    about = "beta (selected by log loss) on 24 labelled images"
    assert (found["images"], found["calibration"]) == (24, about)
    assert set(found["noise_floor"]) == set(NOISE_FLOOR_METRICS)
    assert 0 <= found["summary"]["mean_average_precision"] <= 1


def test_an_encoder_is_evaluated_for_the_labels_of_the_file(home, run):
    done = run("evaluate", "tiny-vit", "labels.csv")
    assert done.out.startswith("24 images, 4 labels; ")


def test_undefined_labels_are_counted(home, run):
    line = ["evaluate", "tiny-vit", "labels.csv", "--labels", "lion, bear"]
    assert "Average precision 1" in run(*line).out


def test_labels_are_localized_only_for_a_report(home, run, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(home / "own-cache"))

    def kept(*more):
        assert run("evaluate", "recognizer", "labels.csv", *more).code == 0
        return json.loads(run("cache", "--json").out)["entries"]

    assert kept() < kept("--report", "report")


def test_all_images_that_cannot_be_read_are_named_at_the_end(home, run):
    for image in sorted((home / "images").iterdir())[:5]:
        image.write_bytes(b"")
    done = run("evaluate", "recognizer", "labels.csv")
    assert done.out.startswith("19 images")
    assert done.err.count(": empty file") == 5


def test_the_precision_of_a_search_is_printed_with_the_prevalence(home, run):
    line = ["evaluate", "recognizer", "labels.csv", "--search", "lion & !coffee"]
    done = run(*line, "--report", "report")
    assert re.search(r"\n\d+\.\d % +\d+\.\d % .* \d+ of 24 +lion & !coffee\n", done.out)
    assert "precision at 10  prevalence" in done.out
    found = json.loads(run(*line, "--json").out)["searches"][0]
    assert found["query"] == "lion & !coffee"
    assert found["precision"] == sum(hit["is_relevant"] for hit in found["hits"]) / 10
    assert found["prevalence"] == found["relevant_images"] / found["images"]
    page = (home / "report" / "index.html").read_text()
    assert "lion &amp; !coffee" in page
    assert f"precision at 10 is {100 * found['precision']:.1f} %" in page


def test_hits_are_those_that_an_index_of_the_same_images_finds(indexed, run):
    line = ["evaluate", "recognizer", "labels.csv", "--search", "lion & !coffee", "--json"]
    judged = json.loads(run(*line).out)["searches"][0]["hits"]
    found = json.loads(run("search", "index", "lion & !coffee", "-k", "10", "--json").out)
    names = [[hit["path"].rpartition("/")[2] for hit in hits] for hits in (judged, found)]
    assert names[0] == names[1]


def test_retrieval_judges_all_short_queries(home, run):
    done = run("evaluate", "recognizer", "labels.csv", "--retrieval")
    lengths = re.findall(r"\n(\d) +\d+\.\d % +0\.0 % +(\d+) +(\d+)", done.out)
    assert [(int(n), int(a) + int(b)) for n, a, b in lengths] == [(1, 4), (2, 18), (3, 28)]
    line = ["evaluate", "recognizer", "labels.csv", "--retrieval", "--max-literals", "1", "--json"]
    assert json.loads(run(*line).out)["retrieval"]["lengths"] == [1]


def test_the_length_of_queries_needs_retrieval(home, run):
    done = run("evaluate", "recognizer", "labels.csv", "--max-literals", "2")
    assert (done.code, done.out) == (2, "")
    assert "--max-literals requires --retrieval; got only --max-literals." in done.err


def test_an_encoder_is_measured_with_a_method_that_needs_no_labels(home, run):
    line = ["evaluate", "tiny-vit", "labels.csv", "--json", "--method"]
    found = {m: json.loads(run(*line, m).out) for m in ("zero_shot", "standardized")}
    assert found["zero_shot"]["calibration"]
    assert found["standardized"]["calibration"] is None
    means = [found[m]["summary"]["mean_average_precision"] for m in found]
    assert means[0] != means[1]
    assert "is first fitted on 24 images" in run(*line, "standardized").err
