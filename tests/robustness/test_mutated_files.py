"""A short form of ``mutated_files.py``, in this process and without a limit of memory."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutated_files import READERS, prepare_trials, run_trials

N_TRIALS = 8


@pytest.mark.parametrize("name", READERS)
def test_mutated_files_are_read_or_refused_with_one_line(tmp_path, name):
    failures, counts = [], {"started": 0}

    def report(seed, outcome, text):
        counts[outcome] = counts.get(outcome, 0) + 1
        if outcome.startswith("FAILED"):
            failures.append(f"seed {seed}: {outcome}\n{text}")

    expected = prepare_trials(name, tmp_path)
    run_trials(name, range(N_TRIALS), tmp_path, expected, report)
    assert not failures, failures[0]
    assert counts["started"] == N_TRIALS
