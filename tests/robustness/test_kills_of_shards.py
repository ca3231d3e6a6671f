"""The short form of the kills; the long form is run by hand."""

import runpy
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_killed_shard_resumes_and_all_shards_read_as_one_run(monkeypatch, capsys):
    script = Path(__file__).with_name("kills_of_shards.py")
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.syspath_prepend(str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(" complete folders, no part changed or lost")
    assert line.startswith("1 kills of running processes, ")
