"""The page on extending, followed step by step in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis.configuration import storage_directory

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
STEP = re.compile(r"^`([\w/.]+)`\n\n```(py|diff)\n(.*?)```$", re.MULTILINE | re.DOTALL)
MINIATURES = "tests/data/protocols"  # which a contract imports
USE_FILE = "test_use_of_new_entries.py"
USE = """
import runpy
import numpy as np
import surelabel as sl
from surelabel.cli import main

def test_log_and_brier_is_shown_and_documented(capsys, monkeypatch):
    main(["show", "loss"], standalone_mode=False)
    assert "log_and_brier" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["docs/generate.py"])
    runpy.run_path("docs/generate.py", run_name="__main__")

def test_prototypes_learn_with_log_and_brier(tmp_path):
    random = np.random.default_rng(0)
    vectors = random.normal(size=(200, 8)).astype(np.float32)
    run = sl.load_run(None, ["encoder.name=features:8", "method.name=prototypes",
                             "loss.name=log_and_brier", "loss.weight=0.5"])
    recognizer = sl.Recognizer(run, ["a", "b"]).fit(vectors, vectors[:, :2] > 0.5)
    recognizer.save(tmp_path / "saved")
    again = sl.Recognizer.load(tmp_path / "saved").predict(vectors)
    assert (again.logits == recognizer.predict(vectors).logits).all()
    print(sl.evaluate(recognizer, sl.LabelledFeatures(vectors, ["a", "b"], vectors[:, :2] > 0.5)))
"""
MAX_FILES = {"loss": 4, "method": 5, "metric": 4, "calibrator": 4}


def written_files():
    """Return the files that each row of the page names, by the new part."""
    rows = re.findall(r"^\| (?:\[([\w ]+)\]\([^)]*\)) \| (.*) \|$", PAGE, re.MULTILINE)
    return {part: re.findall(r"`([^`]+)`|\[(which-method\.md)\]", files) for part, files in rows}


def apply_diff(text, diff):
    """Return the text with the lines that start with + inserted after the line before them."""
    lines, position = text.splitlines(), 0
    for line in diff.splitlines():
        if line.startswith("+"):
            lines.insert(position, line[1:])
            position += 1
        else:
            position = lines.index(line[1:]) + 1
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the sources and contracts with the loss and the method of the page."""
    copy = tmp_path_factory.mktemp("extended")
    (copy / "src").mkdir()
    shutil.copytree(ROOT / "src" / "surelabel", copy / "src" / "surelabel", symlinks=True)
    for folder in ("tests/every", MINIATURES, "docs"):
        shutil.copytree(ROOT / folder, copy / folder)  # with the compiled contracts
    for file in ("pyproject.toml", "conftest.py", "tests/conftest.py"):
        shutil.copy(ROOT / file, copy / file)
    for name, kind, text in STEP.findall(PAGE):
        file = copy / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if kind == "diff":
            text = apply_diff(file.read_text(encoding="utf-8"), text)
        else:
            assert not file.exists()
        file.write_text(text, encoding="utf-8")
    (copy / "tests" / USE_FILE).write_text(USE, encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def passed(extended):
    """The tests that pass in one process that imports the copy; no test fails."""
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-rp", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *(f"tests/{USE_FILE}", "tests", "src/surelabel/losses/log_and_brier.py"),
            *("-k", "log_and_brier or prototypes"),
        ],
        cwd=extended,
        env=os.environ
        | {"PYTHONPATH": str(extended / "src"), "OMP_NUM_THREADS": "1"}
        | {"PYTHONDONTWRITEBYTECODE": "1"}
        | {"HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory())},  # constants in equal files
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    return re.findall(r"^PASSED (.*)$", result.stdout, re.MULTILINE)


def test_the_page_names_at_most_four_files_and_five_for_a_method():
    files = written_files()
    assert files.keys() >= MAX_FILES.keys()
    assert {part: len(names) for part, names in files.items()} == {
        part: MAX_FILES.get(part, 4) for part in files
    }


def test_the_steps_write_the_files_of_the_table_except_prose():
    names = {name for name, _, _ in STEP.findall(PAGE)}
    assert names == {
        "src/surelabel/losses/log_and_brier.py",
        "src/surelabel/losses/__init__.py",
        "tests/losses/test_log_and_brier.py",
        "src/surelabel/methods/prototypes.py",
        "src/surelabel/methods/__init__.py",
        "tests/methods/test_prototypes.py",
    }


def test_the_contracts_and_tests_of_the_new_entries_pass(passed):
    assert len([name for name in passed if USE_FILE not in name]) > 60


def test_the_new_entries_are_shown_and_documented(extended, passed):
    assert f"tests/{USE_FILE}::test_log_and_brier_is_shown_and_documented" in passed
    page = (extended / "docs" / "tables.md").read_text(encoding="utf-8")
    assert "### `log_and_brier`" in page
    assert "| `weight` | `1.0` | Weight of the squared error, >= 0. |" in page
    assert "### `prototypes`" in page


def test_a_run_uses_the_new_loss_and_the_new_method(passed):
    assert f"tests/{USE_FILE}::test_prototypes_learn_with_log_and_brier" in passed
