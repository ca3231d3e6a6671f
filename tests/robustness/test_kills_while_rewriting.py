"""The short form of the kills; the long form is run by hand."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork and no SIGKILL")
def test_a_killed_writer_leaves_all_finished_steps_and_no_half_one():
    script = Path(__file__).with_name("kills_while_rewriting.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 kills, ")
    assert done.stdout.endswith(" 0 damaged indexes\n")
