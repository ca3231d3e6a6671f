"""Define the option ``--label-tree``, and describe its effect on a calibration."""

from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command
from surelabel.cli.terminal_text import format_terminal_table

MAX_INCREASE = 1.01  # factor of the log loss of the leaves above which a note is printed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surelabel.recognizer.label_tree_projection import LabelTreeProjection
    from surelabel.records import LabelTree


def label_tree_option(function: Command) -> Command:
    """Add the option ``--label-tree`` for a file with the parents of labels."""
    return click.option(
        "--label-tree",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.txt",
        help="Tree of the labels, with lines such as animal > dog. After the calibration, no label "
        "is more probable than its parent. Targets that follow from the tree are added to a label "
        "if its frequency is then distorted less.",
    )(function)


def read_label_tree_option(
    path: str | None, names: "Sequence[str] | None" = None
) -> "LabelTree | None":
    """Return the tree of a file, or None if the option is not given.

    Args:
        path: Value of the option ``--label-tree``.
        names: Labels of the recognizer; aliases are separated by ``|``. If None, the labels are not
            checked.

    Raises:
        DataError: If the file is invalid, or contains another label.
    """
    from surelabel.data import parse_label_names, read_label_tree

    if path is None:
        return None
    return read_label_tree(path, names=names and parse_label_names(names)[0])


def label_tree_metrics_as_text(projection: "LabelTreeProjection") -> str:
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
    before, after = projection.leaves.get("log_loss", (0.0, 0.0))
    note = (
        "\nThis step makes the leaves worse, probably because the method recognizes the parents "
        "less reliably than the leaves. Annotate the parents in more images, or leave out the tree."
    )
    return (
        f"{text} Metrics before and after this step, with cross-fitted probabilities of the "
        f"calibration images:\n{table}{note if after > MAX_INCREASE * before else ''}"
    )


def label_tree_metrics_as_json(projection: "LabelTreeProjection | None") -> dict[str, Any] | None:
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
