"""``surelabel search``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from surelabel.cli.terminal import Terminal, table, with_terminal

if TYPE_CHECKING:
    from surelabel.retrieval import Hit


@click.command()
@click.argument("index")
@click.argument("query")
@click.option("-k", type=int, default=20, show_default=True, help="At most so many pictures.")
@with_terminal
def search(terminal: Terminal, index: str, query: str, k: int) -> None:
    """Find pictures by several labels at once.

    QUERY names wanted labels and, after !, unwanted ones, as in "spoon & hot dog & !knife". Each
    picture comes with the probability that all of it holds, and with that of each label.
    """
    from surelabel.retrieval import Index

    hits = Index.open(index).search(query, k=k)
    value = [{"path": h.path, "probability": h.probability, "terms": h.terms} for h in hits]
    terminal.show(value, hits_table(hits))


def hits_table(hits: Sequence["Hit"]) -> str:
    """A line a picture: the probability of all, of each label, the path."""
    if not hits:
        return "The index is empty."
    rows = [[f"{h.probability:.3f}", *(f"{p:.3f}" for p in h.terms.values()), h.path] for h in hits]
    return table(["all", *hits[0].terms, "path"], rows)
