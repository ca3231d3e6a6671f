"""Open the indexes of ``surelabel search``: one, several, or indexes in a Ray cluster."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from surelabel.cli.terminal import Terminal

if TYPE_CHECKING:
    from surelabel.retrieval import Index
    from surelabel.retrieval.merged_index import MergedIndex

    SearchedIndex = Index | MergedIndex


def split_search_arguments(
    arguments: Sequence[str], text: str | None
) -> tuple[Sequence[str], str | None]:
    """Return the folders of the indexes, and the query or None.

    Without ``--text``, the last argument is the query, except if it is the folder of an index. With
    ``--text``, all folders are indexes.

    Args:
        arguments: Arguments of the command, at least one.
        text: Value of ``--text``.

    Raises:
        UsageError: If a folder is an empty text.
    """
    last = arguments[-1]
    is_folder = os.path.isdir(last) if text is not None else os.path.isfile(f"{last}/index.json")
    has_query = len(arguments) > 1 and not is_folder
    folders, query = (arguments[:-1], last) if has_query else (arguments, None)
    if not all(folder.strip() for folder in folders):
        raise click.UsageError("INDEX must not be empty.")
    return folders, query


def check_sharded_search_options(
    n_indexes: int, max_wrong: float | None, cluster: str | None
) -> None:
    """Check that options of one index are not combined with several indexes or a cluster.

    Args:
        n_indexes: Number of indexes.
        max_wrong: Value of ``--max-wrong``.
        cluster: Value of ``--cluster``.

    Raises:
        UsageError: If options exclude each other.
    """
    if max_wrong is not None and n_indexes > 1:
        raise click.UsageError(
            f"--max-wrong requires one index; got {n_indexes} indexes. Remove --max-wrong, or "
            "create one index of all images."
        )
    if cluster is not None and max_wrong is not None:
        raise click.UsageError("--max-wrong cannot be combined with --cluster. Remove --cluster.")


@contextmanager
def open_searched_index(
    terminal: Terminal, folders: Sequence[str], root: str | None, cluster: str | None
) -> "Iterator[SearchedIndex]":
    """Open one index, several indexes, or indexes in a Ray cluster.

    Args:
        terminal: Object that prints results, status lines and progress.
        folders: Folders of the indexes, at least one.
        root: Root folder of the images, or None.
        cluster: Value of ``--cluster``.
    """
    from surelabel.retrieval import Index, ShardedIndex

    if cluster is not None:
        terminal.print_import_status()

        from surelabel.cluster.sharded_search import open_cluster_index

        with open_cluster_index(folders, address=cluster, root=root) as index:
            yield index
    elif len(folders) > 1:
        yield ShardedIndex.open(folders, root=root)
    else:
        yield Index.open(folders[0], root=root)
