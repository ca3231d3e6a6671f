"""``surelabel search``: search an index."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from surelabel.cli.index import index_root_option
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table

if TYPE_CHECKING:
    from surelabel.retrieval import Hit


@click.command()
@click.argument("index")
@click.argument("query")
@click.option("-k", type=int, default=20, show_default=True, help="Maximum number of images.")
@index_root_option
@with_terminal_options
def search(terminal: Terminal, index: str, query: str, k: int, root: str | None) -> None:
    """Search an index for images that match several labels.

    QUERY lists wanted labels and, after !, unwanted labels, such as "spoon & hot dog & !knife".
    The result contains the probability that an image matches the whole query, and the
    probability of each label.
    """
    from surelabel.retrieval import Index

    hits = Index.open(index, root=root).search(query, k=k)
    value = [{"path": h.path, "probability": h.probability, "terms": h.terms} for h in hits]
    terminal.print_result(value, format_search_hits(hits))


def format_search_hits(hits: Sequence["Hit"]) -> str:
    """Format a table of images: probability of the query, probability of each label, and path."""
    if not hits:
        return "The index is empty."
    rows = [[f"{h.probability:.3f}", *(f"{p:.3f}" for p in h.terms.values()), h.path] for h in hits]
    return format_terminal_table(["all", *hits[0].terms, "path"], rows)
