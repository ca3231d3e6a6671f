"""Define ``surelabel duplicates``, which finds exact and near-duplicates in an index."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.gallery import check_open_gallery_option, gallery_options, write_gallery
from surelabel.cli.index import index_root_option
from surelabel.cli.input_options import max_image_memory_input_option
from surelabel.cli.operating_point_options import SHARE, OperatingPointRange
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.report import GalleryImage
    from surelabel.retrieval.near_duplicates import DuplicateGroup, DuplicateSearch

N_PRINTED_GROUPS = 100  # groups without --json
EQUAL_CONTENT = "equal content"


@click.command()
@click.argument("index", metavar="INDEX")
@click.option(
    "--min-cosine",
    type=OperatingPointRange(0, 1, min_open=True),
    help="Minimum cosine of the vectors of two near-duplicates. [minimum for "
    "--false-positive-rate]",
)
@click.option(
    "--false-positive-rate",
    type=SHARE,
    help="Share of pairs of different images that are reported as near-duplicates. This rate sets "
    "the minimum cosine, as measured for tiny-vit and tiny-rn on generated scenes. [1e-6]",
)
@click.option(
    "--max-pairs",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Maximum number of near-duplicate pairs. A search that finds more pairs stops with an "
    "error.",
)
@max_image_memory_input_option
@gallery_options
@index_root_option
@with_terminal_options
def duplicates(
    terminal: Terminal,
    index: str,
    min_cosine: float | None,
    false_positive_rate: float | None,
    max_pairs: int,
    gallery: str | None,
    open_gallery: bool,
    root: str | None,
) -> None:
    """Find duplicates in an index.

    Images with equal content are exact duplicates. Images whose vectors have at least the cosine
    --min-cosine are near-duplicates. Images that are connected by pairs of duplicates are printed
    as one group. No file is changed or deleted. Images are read only for --gallery.

    All pairs of images are compared. Twice as many images take four times as long.
    """
    check_open_gallery_option(gallery, open_gallery=open_gallery)
    if min_cosine is not None and false_positive_rate is not None:
        raise click.UsageError(
            "Expected either --min-cosine or --false-positive-rate; got both. Remove one of these "
            "options."
        )

    from surelabel.retrieval import Index
    from surelabel.retrieval.near_duplicates import find_duplicates

    opened = Index.open(index, root=root)
    with terminal.progress("Comparing", "pairs") as progress:
        result = find_duplicates(
            opened,
            min_cosine=min_cosine,
            false_positive_rate=false_positive_rate,
            max_pairs=max_pairs,
            progress=progress,
        )
    notes = describe_duplicate_search(result)
    print_duplicate_search(terminal, result, notes)
    if gallery:
        images = list(gallery_images_of_duplicates(result.groups))
        write_gallery(
            terminal, gallery, f"Duplicates in {index}", notes, images, open_gallery=open_gallery
        )


def describe_duplicate_search(result: "DuplicateSearch") -> list[str]:
    """Return sentences on the numbers of duplicates, the limit, and its false-positive rate.

    Args:
        result: Result of a search for duplicates.
    """
    n_grouped = sum(len(group.paths) for group in result.groups)
    n_copies = sum(len(paths) - 1 for group in result.groups for paths in group.exact)
    sentences = [
        f"Found {format_count(len(result.groups), 'group')} with {n_grouped:,} of "
        f"{format_count(result.n_images, 'image')}; "
        f"{format_count(n_copies, 'image repeats', 'images repeat')} the content of another file.",
        f"{result.n_reported_pairs:,} of {format_count(result.n_compared_pairs, 'pair')} with "
        f"different content have a cosine of at least {result.min_cosine:g} (share "
        f"{result.share_of_pairs:.1e}).",
        describe_duplicate_limit(result),
        "In this index, the false-positive rate is at most the share of reported pairs, if "
        "near-duplicates are reported more often than pairs of different images.",
    ]
    if result.n_reported_pairs > result.n_compared_images:
        sentences.append(
            "There are more reported pairs than images, so the minimum cosine may be too low for "
            "this index. Look at some pairs, or give a higher --min-cosine."
        )
    if result.n_zero_vectors:
        sentences.append(
            f"{format_count(result.n_zero_vectors, 'image vector is', 'image vectors are')} zero "
            "and cannot be compared."
        )
    return sentences


def describe_duplicate_limit(result: "DuplicateSearch") -> str:
    """Return sentences on the measured false-positive rate of the limit of a search for duplicates.

    Args:
        result: Result of a search for duplicates.
    """
    limit = result.limit
    if result.encoder is None:
        return "The false-positive rate was not measured for this encoder."
    if limit is None:
        return (
            f"The false-positive rate of {result.encoder} was not measured for a minimum cosine as "
            f"low as {result.min_cosine:g}."
        )
    at_most = "" if limit.min_cosine == result.min_cosine else "at most "
    return (
        f"False-positive rate: {at_most}{limit.false_positive_rate:.1e} (95 % interval "
        f"{limit.low:.1e} to {limit.high:.1e}). With {result.encoder}, {limit.n_reported:,} of "
        f"{limit.n_pairs:,} pairs of different generated scenes have a cosine of "
        f"at least {limit.min_cosine:g}. "
        "For other kinds of images, the rate can be thousands of times higher."
    )


def print_duplicate_search(
    terminal: Terminal, result: "DuplicateSearch", notes: Sequence[str]
) -> None:
    """Print the groups of duplicates, and notes on the result.

    Without ``--json``, the notes are a part of the result, and the first groups are printed. With
    ``--json``, the notes are status lines.

    Args:
        terminal: Object that prints results, status lines and progress.
        result: Result of a search for duplicates.
        notes: Sentences on the result.
    """
    groups = result.groups[:N_PRINTED_GROUPS]
    rows = [
        (number, match, path)
        for number, group in enumerate(groups, start=1)
        for path, match in describe_duplicate_matches(group).items()
    ]
    table = [format_terminal_table(["group", "match", "path"], rows)] if rows else []
    n_more = len(result.groups) - len(groups)
    if n_more:
        table.append(f"… and {format_count(n_more, 'more group')}; --json prints all groups.")
    terminal.print_result(
        duplicate_search_to_json(result) if terminal.as_json else None, "\n".join([*table, *notes])
    )
    if terminal.as_json:
        for note in notes:
            terminal.print_status(note)


def describe_duplicate_matches(group: "DuplicateGroup") -> dict[str, str]:
    """Return, for each image of a group by path, its match with another image of the group.

    The match is ``equal content`` for exact duplicates. Otherwise, the match is the highest cosine.

    Args:
        group: Group of duplicates.
    """
    cosines: dict[str, float] = {}
    for pair in group.pairs:  # by decreasing cosine
        cosines.setdefault(pair.first, pair.cosine)
        cosines.setdefault(pair.second, pair.cosine)
    copies = {path for paths in group.exact for path in paths}
    return {
        path: EQUAL_CONTENT if path in copies else format_duplicate_cosine(cosines[path])
        for path in group.paths
    }


def format_duplicate_cosine(cosine: float) -> str:
    """Return a cosine truncated to four decimals, so that only a cosine of 1 is ``1.0000``.

    Args:
        cosine: Cosine in [-1, 1].

    Example:
        >>> format_duplicate_cosine(0.99999), format_duplicate_cosine(1.0)
        ('0.9999', '1.0000')
    """
    return f"{int(cosine * 10_000) / 10_000:.4f}"


def duplicate_search_to_json(result: "DuplicateSearch") -> dict[str, Any]:
    """Return the value of ``--json`` of a search for duplicates.

    Args:
        result: Result of a search for duplicates.
    """
    limit = None
    if result.limit is not None:
        limit = asdict(result.limit) | {"false_positive_rate": result.limit.false_positive_rate}
    return {
        "min_cosine": result.min_cosine,
        "encoder": result.encoder,
        "measured_limit": limit,
        "images": result.n_images,
        "compared_pairs": result.n_compared_pairs,
        "reported_pairs": result.n_reported_pairs,
        "share_of_pairs": result.share_of_pairs,
        "zero_vectors": result.n_zero_vectors,
        "groups": [asdict(group) for group in result.groups],
    }


def gallery_images_of_duplicates(
    groups: "Sequence[DuplicateGroup]",
) -> "Iterator[GalleryImage]":
    """Yield the images of all groups for a gallery, with the group and the match of each image.

    Args:
        groups: Groups of duplicates.
    """
    from surelabel.report import GalleryImage, GalleryLabel

    for number, group in enumerate(groups, start=1):
        for path, match in describe_duplicate_matches(group).items():
            name, value = ("content", "equal") if match == EQUAL_CONTENT else ("cosine", match)
            yield GalleryImage(path, [GalleryLabel(name, value)], title=f"Group {number}")
