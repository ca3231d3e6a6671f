"""The short form of the runs; the long form is run by hand."""

import os
import runpy
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_an_output_that_does_not_fit_is_one_line_and_leaves_the_earlier_output(monkeypatch, capsys):
    script = Path(__file__).with_name("full_disk.py")
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.chdir(os.curdir)  # the script changes the current folder
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out == "limited files: 3 outputs, 2 refused writes\n"
