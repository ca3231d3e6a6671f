import json
import re

import pytest

from surelabel.errors import DataError
from surelabel.report import check_report_folder, report, report_comparison


def test_a_report_of_a_comparison_has_its_page_markdown_plots_and_values(compared, tmp_path):
    found = compared()
    page = report_comparison(found, tmp_path / "report").read_text(encoding="utf-8")
    names = {file.relative_to(tmp_path / "report").as_posix() for file in page_files(tmp_path)}
    assert names == {
        *("index.html", "report.md", "comparison.json"),
        *(f"plots/difference_{m}.png" for m in ("average_precision", "brier", "log_loss")),
    }
    held = json.loads((tmp_path / "report" / "comparison.json").read_text(encoding="utf-8"))
    assert held["format"] == "surelabel comparison 1"
    assert held["metrics"]["brier"]["first"] == found.metrics["brier"].first
    assert page.count("<tr>") == 2 + len(found.metrics) + len(found.names)
    markdown = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert re.findall("^## .*$", markdown, re.MULTILINE) == ["## Metrics", "## Labels"]
    assert "&lt;script&gt; | *" in page


def page_files(folder):
    return [file for file in (folder / "report").rglob("*") if file.is_file()]


def test_reports_of_both_kinds_replace_each_other_but_nothing_else(compared, judged, tmp_path):
    report_comparison(compared(), tmp_path / "report")
    report(judged(calibrated=False), tmp_path / "report")
    assert not (tmp_path / "report" / "comparison.json").exists()
    report_comparison(compared(), tmp_path / "report")
    assert not (tmp_path / "report" / "evaluation.json").exists()
    (tmp_path / "report" / "comparison.json").write_text("{}")
    with pytest.raises(DataError, match="not changed"):
        check_report_folder(tmp_path / "report")
