"""Tables in Markdown, and numbers as they stand in them."""

from collections.abc import Sequence

from surelabel.metrics import Interval
from surelabel.report.meanings import meaning_of, shown

PAPER_CALLS = {
    "mean_average_precision": "mAP@y",
    "mean_average_precision_per_image": "mAP@x",
}


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def digits(value: float, metric: str) -> str:
    """A number without its unit, which stands in the head of its column."""
    return shown(value, unit_of(metric)).removesuffix(" %")


def name_of(metric: str) -> str:
    """As the paper calls it, or else as reports do."""
    return PAPER_CALLS.get(metric) or meaning_of(metric).title


def unit_of(metric: str) -> str:
    """Its unit, as reports have it."""
    return meaning_of(metric).unit


def told_apart(found: Interval) -> bool:
    """Whether the interval leaves out 0."""
    return found.low > 0 or found.high < 0
