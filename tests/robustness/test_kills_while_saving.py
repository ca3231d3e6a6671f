"""The short form of the kills; the long form is run by hand."""

import runpy
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_killed_process_leaves_a_whole_recognizer_and_a_fit_that_resumes(monkeypatch, capsys):
    script = Path(__file__).with_name("kills_while_saving.py")
    monkeypatch.setattr(sys, "argv", [str(script)])

    runpy.run_path(str(script), run_name="__main__")
    *saves, fits = capsys.readouterr().out.splitlines()
    assert [line.split(":")[1][:8] for line in saves] == [" 1 kills"] * 2
    assert fits.startswith("fit: 1 kills of running processes, ")
