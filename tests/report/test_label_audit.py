import json

import numpy as np
import pytest

import surelabel as sl
from surelabel.data import correct_labels
from surelabel.errors import DataError
from surelabel.evaluation import find_label_errors
from surelabel.recognizer import LabelAudit
from surelabel.report import write_audit_report


@pytest.fixture(scope="module")
def images():
    return sl.collection("scenes-80", split="test").take(range(60))


def audit_of(paths, *, has_images):
    """Audit with one missing positive and one wrong positive."""
    logits = np.linspace(-9, 9, len(paths))[:, None]
    targets = (logits > 0).astype(float)
    targets[0], targets[-1] = 1, 0
    errors = find_label_errors(logits, targets)
    noun = "image" if has_images else "row"
    return LabelAudit(paths, ["<b>"], errors, "a method with 5 folds", noun, has_images)


def test_a_report_has_images_and_corrections_that_are_read_again(images, tmp_path):
    page = write_audit_report(audit_of(images.paths, has_images=True), tmp_path / "audit")
    text = page.read_text()
    assert text.count("<img") == 2
    counts = "60 images, 1 label: 1 suspected missing positive and 1 suspected wrong positive."
    assert counts in text
    assert "&lt;b&gt;</p>" in text
    results = json.loads((tmp_path / "audit" / "audit.json").read_text())
    paths = [error["path"] for error in results["suspected"]]
    assert paths == [images.paths[-1], images.paths[0]]
    file = tmp_path / "audit" / "corrections.csv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], f"{lines[1]}1", f"{lines[2]}0"]))
    targets = np.zeros((60, 1))
    targets[0] = 1
    corrected = correct_labels(sl.LabelledImages(images.paths, ["<b>"], targets), file)
    assert corrected.targets[[0, -1]].tolist() == [[0], [1]]


def test_vectors_have_a_table_without_images(tmp_path):
    rows = [f"row {row}" for row in range(60)]
    page = write_audit_report(audit_of(rows, has_images=False), tmp_path / "audit").read_text()
    assert "<img" not in page
    assert "row 59</th>" in page


def test_filled_corrections_are_never_replaced(images, tmp_path):
    (tmp_path / "corrections.csv").write_text("filled")
    with pytest.raises(DataError, match=r"would replace corrections\.csv"):
        write_audit_report(audit_of(images.paths, has_images=True), tmp_path)
    assert (tmp_path / "corrections.csv").read_text() == "filled"


def test_the_markdown_of_an_audit_names_all_targets_without_images(images, tmp_path):
    write_audit_report(audit_of(images.paths, has_images=True), tmp_path / "audit")
    text = (tmp_path / "audit" / "report.md").read_text()
    assert "\n## Missing positives\n" in text
    assert text.count("\n\\<b\\>\n") == 2
    assert "data:" not in text
