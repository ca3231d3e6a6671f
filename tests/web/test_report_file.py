import pytest

from surelabel.errors import DataError, InputError
from surelabel.web import report_file
from surelabel.web.report_file import ReportFile


def test_the_page_of_a_report_folder_is_read(tmp_path):
    (tmp_path / "index.html").write_text("<h1>Report</h1>")
    assert ReportFile(str(tmp_path)).read() == b"<h1>Report</h1>"
    assert ReportFile(str(tmp_path / "index.html")).read() == b"<h1>Report</h1>"


def test_a_file_that_is_written_again_is_read_again(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("first")
    report = ReportFile(str(page))
    page.write_text("second")
    assert report.read() == b"second"


def test_a_missing_report_is_refused(tmp_path):
    with pytest.raises(DataError, match="must be a readable file; No such file"):
        ReportFile(str(tmp_path / "nothing.html"))


def test_another_kind_of_file_is_refused(tmp_path):
    secret = tmp_path / "secret.key"
    secret.write_text("secret")
    with pytest.raises(InputError, match="must be an HTML file or the folder of a report"):
        ReportFile(str(secret))


def test_a_report_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(report_file, "MAX_REPORT_BYTES", 10)
    (tmp_path / "index.html").write_text("more than ten bytes")
    with pytest.raises(DataError, match="it has more"):
        ReportFile(str(tmp_path))
