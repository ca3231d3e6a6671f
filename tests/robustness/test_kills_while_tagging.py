"""The short form of the kills; the long form is run by hand."""

import runpy
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="worker processes are found in /proc")
def test_a_killed_run_of_tag_loses_no_finished_block_and_resumes(monkeypatch, capsys):
    script = Path(__file__).with_name("kills_while_tagging.py")
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    (outputs,) = capsys.readouterr().out.splitlines()
    assert outputs.startswith("tag --out: 1 kills of running processes, ")
