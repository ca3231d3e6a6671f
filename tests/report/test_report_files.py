import json
import shutil
from dataclasses import replace

import pytest

from surelabel.errors import DataError, InputError
from surelabel.report import QueryHits, RetrievalResults, report
from surelabel.retrieval import Hit


def files(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.fixture(scope="module")
def older(evaluation_of, tmp_path_factory):
    """The page of a report that tests only read or copy."""
    names = [f"label {i}" for i in range(8)]
    found, before = (
        evaluation_of([f"{i}.jpg" for i in range(60)], names, claimed=claimed)
        for claimed in (1.0, 2.0)
    )
    hits = [Hit(found.predictions.paths[0], 0.5, {"label 1": 0.5})]
    folder = tmp_path_factory.mktemp("older") / "deep" / "report"
    made = report(found, folder, before=before, searches=[QueryHits("label 1", hits)])
    assert made == folder / "index.html"
    return made


def test_a_report_is_a_page_plots_and_numbers(older):
    made = older
    assert files(made.parent) == [
        "evaluation.json",
        "index.html",
        "plots/average_precision.png",
        "plots/cooccurrence.png",
        "plots/labels_per_image.png",
        "plots/precision_recall.png",
        "plots/precision_recall_per_label.png",
        "plots/reliability.png",
        "plots/reliability_before.png",
        "plots/reliability_per_label.png",
        "plots/risk_coverage.png",
        "plots/score_histograms.png",
        "report.md",
    ]
    assert [p.name for p in made.parent.parent.iterdir()] == ["report"]


def test_an_older_report_is_replaced_as_a_whole(older, judged, tmp_path):
    shutil.copytree(older.parent, tmp_path / "report")
    report(judged(calibrated=False), tmp_path / "report")
    assert files(tmp_path / "report") == [
        "evaluation.json",
        "index.html",
        "plots/average_precision.png",
        "plots/precision_recall.png",
        "plots/precision_recall_per_label.png",
        "report.md",
    ]
    held = json.loads((tmp_path / "report" / "evaluation.json").read_text(encoding="utf-8"))
    assert held["calibration"] is None


def test_a_report_with_all_parts_can_be_replaced(whole, judged, tmp_path):
    retrieval = RetrievalResults((1, 2), (0.8, 0.7), (8, 80), (0, 4))
    report(whole(), tmp_path / "report", retrieval=retrieval)
    assert {
        "plots/calibration_budget.png",
        "plots/calibration_effect.png",
        "plots/map_by_query_length.png",
    } <= set(files(tmp_path / "report"))
    report(judged(calibrated=False), tmp_path / "report")
    assert "plots/map_by_query_length.png" not in files(tmp_path / "report")


def test_a_report_of_version_0_1_0_is_replaced(judged, tmp_path):
    (tmp_path / "report" / "plots").mkdir(parents=True)
    start = '{\n "format": "surelabel report 1",\n "model": ""}'
    (tmp_path / "report" / "evaluation.json").write_text(start)
    for name in ("confidence", "labels_together", "per_class", "queries", "budget"):
        (tmp_path / "report" / "plots" / f"{name}.png").write_bytes(b"")
    report(judged(calibrated=False), tmp_path / "report")
    plots = ["average_precision.png", "precision_recall.png", "precision_recall_per_label.png"]
    assert files(tmp_path / "report/plots") == plots


def test_an_empty_folder_is_taken(judged, tmp_path):
    (tmp_path / "report").mkdir()
    assert report(judged(calibrated=False), tmp_path / "report").is_file()


@pytest.mark.parametrize("name", ["notes.txt", "index.html", "plots/mine.png", "evaluation.json"])
def test_a_folder_that_holds_something_else_is_left_alone(judged, tmp_path, name):
    (tmp_path / "mine" / "plots").mkdir(parents=True)
    (tmp_path / "mine" / name).write_text("precious")
    with pytest.raises(DataError, match="not changed"):
        report(judged(), tmp_path / "mine")
    assert (tmp_path / "mine" / name).read_text() == "precious"


def test_another_file_in_a_report_is_not_removed(judged, tmp_path):
    report(judged(calibrated=False), tmp_path / "report")
    (tmp_path / "report" / "notes.txt").write_text("precious")
    with pytest.raises(DataError, match=r"such as notes\.txt"):
        report(judged(calibrated=False), tmp_path / "report")
    assert (tmp_path / "report" / "notes.txt").read_text() == "precious"


def test_a_file_in_the_place_of_the_folder_is_left_alone(judged, tmp_path):
    (tmp_path / "report").write_text("precious")
    with pytest.raises(
        DataError, match=r"must be a folder; got the file .* The file was not changed"
    ):
        report(judged(), tmp_path / "report")


def test_a_place_that_cannot_be_written_is_named(judged, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        report(judged(calibrated=False), tmp_path / "file" / "report")


def test_before_must_be_about_the_same_images(judged, tmp_path):
    with pytest.raises(
        InputError,
        match="got 50 images x 8 labels in before, and 60 images x 8 labels in evaluation",
    ):
        report(judged(), tmp_path / "report", before=judged(count=50))


def test_a_path_that_is_not_unicode_is_written_as_an_escape(judged, elsewhere, tmp_path):
    found = elsewhere(judged(calibrated=False), [f"{i}\udcff.jpg" for i in range(60)])
    made = report(found, tmp_path / "report")
    assert r"0\udcff.jpg" in made.read_text(encoding="utf-8")
    held = json.loads((tmp_path / "report" / "evaluation.json").read_text(encoding="utf-8"))
    assert held["worst"][0]["path"] == "0\udcff.jpg"


def test_a_data_set_without_examples_can_be_reported(judged, tmp_path):
    found = replace(judged(calibrated=False), worst_examples=(), best_examples=())
    made = report(found, tmp_path / "report")
    assert 'id="images"' not in made.read_text(encoding="utf-8")
