"""Define ``surelabel protocol``, which lists evaluation protocols and checks folders."""

from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.bench import bench
from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.data.protocols import EvaluationProtocol, ProtocolCheck, SplitCheck


@click.command()
@click.argument("name", required=False)
@click.argument("folder", required=False)
@click.option(
    "--subset",
    is_flag=True,
    help="Accept a folder in which images are missing. Results are then marked as a subset.",
)
@click.option(
    "--out",
    callback=validate_terminal_output_path,
    metavar="DIRECTORY",
    help="Write one dataset file for each split (CSV), which other commands accept as DATASET.",
)
@with_terminal_options
def protocol(
    terminal: Terminal, name: str | None, folder: str | None, subset: bool, out: str | None
) -> None:
    """List evaluation protocols, or check the folder of a dataset.

    NAME is an evaluation protocol, such as voc12. FOLDER contains the dataset in its official
    layout. Without FOLDER, the labels, splits, sources and files of NAME are printed. Nothing is
    downloaded.
    """
    from surelabel.data.protocols import PROTOCOLS
    from surelabel.data.protocols.definition.dataset_files import write_protocol_datasets
    from surelabel.errors import DataError
    from surelabel.tables import find_table_entry

    if folder is None and (subset or out):
        raise click.UsageError("--subset and --out require NAME and FOLDER. Add both.")
    if name is None:
        print_list_of_protocols(terminal, PROTOCOLS)
        return
    entry = find_table_entry(PROTOCOLS, name)
    if folder is None:
        print_description_of_protocol(terminal, name, entry)
        return

    from surelabel.data.protocols import check_protocol_folder

    check = check_protocol_folder(entry, folder, subset=subset)
    files = write_protocol_datasets(check, out) if out and not check.problems else []
    print_check_of_protocol(terminal, name, entry, check, files)
    if check.problems:
        raise DataError(
            f"{folder} differs from the evaluation protocol {name} in "
            f"{format_count(len(check.problems), 'point')}, which are listed above."
        )


def print_list_of_protocols(terminal: Terminal, table: "dict[str, EvaluationProtocol]") -> None:
    """Print a table of all evaluation protocols.

    Args:
        terminal: Object that prints results, status lines and progress.
        table: Evaluation protocols by name.
    """
    rows = [
        [
            name,
            entry.title,
            entry.task,
            str(len(entry.labels) or "-"),
            ", ".join(f"{split.name} ({split.role})" for split in entry.splits),
        ]
        for name, entry in table.items()
    ]
    terminal.print_result(
        {name: description_as_json(entry) for name, entry in table.items()},
        format_terminal_table(["name", "dataset", "task", "labels", "splits"], rows),
    )


def description_as_json(entry: "EvaluationProtocol") -> dict[str, Any]:
    """Return the contents of an evaluation protocol for ``--json``."""
    return {
        "title": entry.title,
        "task": entry.task,
        "labels": list(entry.labels),
        "groups": {group: list(labels) for group, labels in entry.groups.items()},
        "splits": [
            {
                "name": split.name,
                "role": split.role,
                "official": split.official.value,
                "official_source": split.official.source or None,
                "evaluated": split.evaluated.value,
                "evaluated_source": split.evaluated.source or None,
                "rule": split.rule,
            }
            for split in entry.splits
        ],
        "metrics": {name: dict(settings) for name, settings in entry.metrics.items()},
        "empty_labels": entry.empty_labels,
        "comparisons": comparisons_of_protocol(entry),
        "files": [vars(file) for file in entry.files],
        "notes": list(entry.notes),
    }


def comparisons_of_protocol(entry: "EvaluationProtocol") -> list[str]:
    """Return the comparisons that an evaluation protocol fits and that accept ``--protocol``."""
    return [
        name
        for name in entry.comparisons
        if any(option.name == "protocol" for option in bench.commands[name].params)
    ]


def print_description_of_protocol(
    terminal: Terminal, name: str, entry: "EvaluationProtocol"
) -> None:
    """Print labels, splits, metrics, files and notes of an evaluation protocol.

    Args:
        terminal: Object that prints results, status lines and progress.
        name: Name of the evaluation protocol.
        entry: Evaluation protocol.
    """
    splits = [
        [split.name, split.role, str(split.official), str(split.evaluated), split.rule]
        for split in entry.splits
    ]
    lines = [
        f"{entry.title} ({name}), {entry.task}",
        format_terminal_table(["split", "use", "official", "as evaluated", "images"], splits),
    ]
    if entry.labels:
        lines.append(
            f"{format_count(len(entry.labels), 'label')} of {entry.label_source}: "
            f"{', '.join(entry.labels)}."
        )
    lines += [f"{group}: {', '.join(labels)}." for group, labels in entry.groups.items()]
    if entry.metrics:
        empty = "counts as 0" if entry.empty_labels == "zero" else "is left out of means"
        lines.append(
            f"Metrics: {', '.join(entry.metrics)}. A label without a positive image {empty}."
        )
    files = [[file.path, file.content, file.origin] for file in entry.files]
    lines.append(format_terminal_table(["file", "content", "origin"], files))
    lines += entry.notes
    if comparisons := comparisons_of_protocol(entry):
        lines.append(
            f"Comparisons: surelabel bench {' | '.join(comparisons)} --protocol {name} --data "
            "FOLDER --encoder ENCODER."
        )
    terminal.print_result(description_as_json(entry), "\n".join(lines))


def print_check_of_protocol(
    terminal: Terminal,
    name: str,
    entry: "EvaluationProtocol",
    check: "ProtocolCheck",
    files: list[str],
) -> None:
    """Print what a folder contains, which counts it matches, and how it differs.

    Args:
        terminal: Object that prints results, status lines and progress.
        name: Name of the evaluation protocol.
        entry: Evaluation protocol.
        check: Result of the check.
        files: Dataset files that were written.
    """
    lines = [f"{check.folder}: {entry.title}, {entry.task}."]
    lines += [describe_split_check(split) for split in check.splits]
    if check.is_subset and not check.problems:
        lines.append("This is a subset; its results are not comparable with published results.")
    lines += [f"Note: {defect}" for defect in check.known_defects]
    lines += check.problems
    lines += [f"Written: {file}" for file in files]
    value = {
        "protocol": name,
        "folder": str(check.folder),
        "splits": [
            {
                "name": split.split.name,
                "listed": split.n_listed,
                "found": len(split.rows.images),
                "matches": split.matched_counts,
            }
            for split in check.splits
        ],
        "is_subset": check.is_subset,
        "known_defects": list(check.known_defects),
        "problems": list(check.problems),
        "files": files,
    }
    terminal.print_result(value, "\n".join(lines))


def describe_split_check(check: "SplitCheck") -> str:
    """Return a sentence with the number of images of a split, and the counts that it matches."""
    found, listed = len(check.rows.images), format_count(check.n_listed, "listed image")
    split = check.split
    text = f"{split.name}: {found:,} of {listed}"
    counts = (split.official.value, split.evaluated.value)
    if check.matched_counts:
        source = split.official if "official" in check.matched_counts else split.evaluated
        return f"{text}; the lists match the count {' and '.join(check.matched_counts)}: {source}."
    if counts == (None, None):
        return f"{text}; the count is not verified."
    return f"{text}; the lists match no published count."
