from dataclasses import replace

import pytest

from surelabel.bench.rows import RowDifference
from surelabel.bench.similarity import SIMILARITY
from surelabel.bench.similarity.page import similarity_conclusions, similarity_paragraphs
from surelabel.bench.similarity.results import NOISE
from surelabel.metrics import ConfidenceInterval


def with_difference(results, value, low, high):
    """Return results in which all differences of noise rows are the same."""
    interval = ConfidenceInterval(value, low, high, 0)
    difference = RowDifference(value, interval, interval)
    rows = tuple(
        replace(
            row,
            differences={
                title: dict.fromkeys(metrics, difference)
                for title, metrics in row.differences.items()
            },
        )
        for row in results.tables[NOISE]
    )
    return replace(results, tables=results.tables | {NOISE: rows})


@pytest.mark.parametrize(
    ("value", "low", "high", "verb"),
    [
        (0.02, 0.01, 0.03, "is higher than"),
        (-0.02, -0.03, -0.01, "is lower than"),
        (0.02, -0.01, 0.03, "does not differ significantly from"),
    ],
)
def test_conclusions_follow_from_the_intervals(results, value, low, high, verb):
    sentences = list(similarity_conclusions(with_difference(results, value, low, high)))
    expected = f"With 50 % noisy captions, the mAP@R of VACSR {verb} that of the sigmoid loss"
    assert sentences[4].startswith(expected)
    assert sum(verb in sentence for sentence in sentences) == 8


def test_the_page_has_every_table_and_no_undefined_interval(results):
    page = "\n".join(similarity_paragraphs(results))
    headings = ("Methods and losses", "Noisy correspondence", "Parts of VACSR", "False negatives")
    assert all(f"### {heading}" in page for heading in headings)
    assert "nan" not in page
    line = next(line for line in page.splitlines() if line.startswith("| contrastive + CCR"))
    assert line.count(";") == 0  # one seed: only the interval over images


@pytest.mark.parametrize("name", SIMILARITY.figures)
def test_figures_are_png_files(results, name):
    assert SIMILARITY.figures[name]([results]).startswith(b"\x89PNG")
