"""The short form of the saves; the long form is run by hand."""

import runpy
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_threads_and_processes_save_one_folder_and_another_thread_loads_it(monkeypatch, capsys):
    script = Path(__file__).with_name("threads_saving.py")
    monkeypatch.setattr(sys, "argv", [str(script)])

    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.startswith("12 saves and ")
