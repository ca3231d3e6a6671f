"""Define the option ``--label-tree``, and describe its effect on a calibration."""

from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command
from surelabel.cli.terminal_text import format_terminal_table

if TYPE_CHECKING:
    from surelabel.recognizer.label_tree_projection import LabelTreeProjection
    from surelabel.records import LabelTree


def label_tree_option(function: Command) -> Command:
    """Add the option ``--label-tree`` for a file with the parents of labels."""
    return click.option(
        "--label-tree",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.txt",
        help="Tree of the labels, with lines such as animal > dog. A positive label makes its "
        "parent positive, and a negative label makes its children negative. After the calibration, "
        "no label is more probable than its parent.",
    )(function)


def read_label_tree_option(path: str | None) -> "LabelTree | None":
    """Return the tree of a file, or None if the option is not given.

    Args:
        path: Value of the option ``--label-tree``.

    Raises:
        DataError: If the file is invalid.
    """
    from surelabel.data import read_label_tree

    return None if path is None else read_label_tree(path)


def label_tree_as_text(projection: "LabelTreeProjection") -> str:
    """Return a table of the metrics before and after a projection to a tree of labels.

    Args:
        projection: Projection of a fitted calibration.
    """
    from surelabel.report.metric_descriptions import describe_metric, format_described_metric_value

    text = "Label tree: no label is more probable than its parent."
    rows = []
    for group in ("leaves", "parents"):
        for metric, values in getattr(projection, group).items():
            described = describe_metric(metric)
            numbers = [format_described_metric_value(value, described.unit) for value in values]
            rows.append([group, described.title, *numbers, described.unit])
    if not rows:
        return text
    table = format_terminal_table(["labels", "metric", "before", "after", "unit"], rows)
    return (
        f"{text} Metrics before and after this step, with cross-fitted probabilities of the "
        f"calibration images:\n{table}"
    )


def label_tree_as_json(projection: "LabelTreeProjection | None") -> dict[str, Any] | None:
    """Return the metrics before and after a projection for ``--json``, or None without a tree."""
    if projection is None:
        return None
    state = projection.state()
    return {
        group: {
            metric: dict(zip(("before", "after"), values, strict=True))
            for metric, values in state.get(f"metrics_of_{group}", {}).items()
        }
        for group in ("leaves", "parents")
    }
