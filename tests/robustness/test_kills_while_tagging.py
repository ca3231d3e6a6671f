"""The short form of the kills; the long form is run by hand."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="worker processes are found in /proc")
def test_a_killed_run_of_tag_loses_no_finished_block_and_resumes():
    script = Path(__file__).with_name("kills_while_tagging.py")
    result = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    (outputs,) = result.stdout.splitlines()
    assert outputs.startswith("tag --out: 1 kills of running processes, ")
