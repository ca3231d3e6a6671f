"""The short form of ``mutated_images.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from mutated_images import OPTIONS, OVERHEAD, decode_in_another_process


def test_mutated_images_are_decoded_or_refused_with_one_line():
    counts, peak = decode_in_another_process(200, seed=7, limit=50)
    assert sum(counts.values()) == 200
    assert {file_format for file_format, _ in counts} == set(OPTIONS)
    assert {outcome for _, outcome in counts} == {"decoded", "skipped"}
    assert peak < 50 + OVERHEAD
