"""Define options of ``tag`` that write tags to XMP sidecars or remove tags from XMP sidecars."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.tag_options import TagSelection
from surelabel.cli.tag_output import with_shown_labels
from surelabel.cli.terminal import Command, Terminal
from surelabel.cli.terminal_text import escape_terminal_line
from surelabel.counts import format_count
from surelabel.errors import DataError

if TYPE_CHECKING:
    from surelabel.data import SidecarChanges
    from surelabel.records import Predictions

DEFAULT_NAMING, NAMINGS = "stem", ("stem", "full")
REMOVAL_OPTIONS = {"sidecar", "sidecar_name", "remove", "workers"}  # others need predictions


def sidecar_options(function: Command) -> Command:
    """Add the options for tags in XMP sidecars."""
    sidecar_option = click.option(
        "--sidecar",
        type=click.Choice(["xmp"]),
        help="Write the shown labels as keywords to an XMP sidecar of each image. Other metadata "
        "and keywords remain, and earlier tags of surelabel are replaced. Images are not changed.",
    )
    naming_option = click.option(
        "--sidecar-name",
        type=click.Choice(NAMINGS),
        help="File name of a sidecar. For IMG.JPG, stem means IMG.xmp (as in Lightroom), and full "
        "means IMG.JPG.xmp (as in darktable). [stem]",
    )
    removal_option = click.option(
        "--remove",
        is_flag=True,
        help="With --sidecar, remove the keywords that surelabel has added to the sidecars of "
        "IMAGES. No labels are predicted.",
    )
    return sidecar_option(naming_option(removal_option(function)))


def check_sidecar_options(values: Mapping[str, Any]) -> None:
    """Check that the options for sidecars are given together, and ``--remove`` without others.

    Args:
        values: Values of the options of ``tag``, by name.

    Raises:
        UsageError: If an option needs or excludes another option.
    """
    if values["sidecar"] is None and (values["sidecar_name"] or values["remove"]):
        option = "--remove" if values["remove"] else "--sidecar-name"
        raise click.UsageError(f"{option} needs --sidecar xmp.")
    given = sorted(
        f"--{name.replace('_', '-')}"
        for name, value in values.items()
        if value not in (None, False) and name not in REMOVAL_OPTIONS
    )
    if values["remove"] and given:
        raise click.UsageError(
            f"--remove predicts no labels, so it cannot be combined with {', '.join(given)}. "
            f"Remove either --remove or {', '.join(given)}."
        )


def write_sidecars_of_blocks(
    blocks: "Iterable[Predictions]",
    selection: TagSelection,
    naming: str,
    changes: "SidecarChanges",
) -> "Iterator[Predictions]":
    """Write the shown labels of each block to the sidecars of its images, and yield the block.

    Args:
        blocks: Predictions of blocks of images.
        selection: Selection of the labels that are shown.
        naming: Naming of the sidecars, ``stem`` or ``full``.
        changes: Counts, to which the counts of each block are added.

    Raises:
        DataError: If a sidecar cannot be written, for example because the disk is full.
    """
    from surelabel.data import write_sidecar_tags

    for block in blocks:
        shown = with_shown_labels(block, selection)
        changes.add(write_sidecar_tags(shown, naming, label_tree=selection.label_tree))
        yield block


def remove_tags_from_sidecars(
    terminal: Terminal, images: Sequence[str], naming: str | None
) -> None:
    """Remove the tags of this package from the sidecars of images, and print the number.

    Args:
        terminal: Object that prints results, status lines and progress.
        images: Paths of the images.
        naming: Naming of the sidecars, ``stem`` or ``full``. If None, sidecars of both namings are
            changed.

    Raises:
        DataError: If a sidecar is refused or cannot be written.
    """
    from surelabel.data import SidecarChanges, remove_sidecar_tags

    changes = SidecarChanges()
    for each_naming in NAMINGS if naming is None else (naming,):
        changes.add(remove_sidecar_tags(images, each_naming))
    noun = "sidecar" if changes.written == 1 else "sidecars"
    terminal.print_result(
        {"removed": changes.written, "refused": [image.path for image in changes.refused]},
        f"Removed the tags of surelabel from {changes.written} {noun} of "
        f"{format_count(len(images), 'image')}.",
    )
    check_no_sidecar_was_refused(changes)


def print_sidecar_changes(terminal: Terminal, changes: "SidecarChanges") -> None:
    """Print the number of sidecars that were written.

    Args:
        terminal: Object that prints results, status lines and progress.
        changes: Counts of all blocks.

    Raises:
        DataError: If a sidecar was refused.
    """
    noun = "sidecar" if changes.written == 1 else "sidecars"
    terminal.print_status(
        f"Written: {changes.written} XMP {noun}; images that needed no change: {changes.unchanged}."
    )
    check_no_sidecar_was_refused(changes)


def check_no_sidecar_was_refused(changes: "SidecarChanges") -> None:
    """Print a list of refused sidecars on stderr, also if ``--quiet`` is given.

    Raises:
        DataError: If a sidecar was refused.
    """
    if not changes.refused:
        return
    for sidecar in changes.refused:
        path, reason = escape_terminal_line(sidecar.path), escape_terminal_line(sidecar.reason)
        click.echo(f"  {path}: {reason}", err=True)
    n_refused = len(changes.refused)
    raise DataError(
        f"{format_count(n_refused, 'XMP sidecar')} could not be changed, for the reasons above. "
        "All other sidecars were written. Correct or move the listed sidecars, and run the command "
        "again."
    )
