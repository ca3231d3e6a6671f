"""``surelabel search``: search an index by labels or by a sentence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from surelabel.cli.index import index_root_option
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table

if TYPE_CHECKING:
    from surelabel.recognizer import SentenceHit
    from surelabel.retrieval import Hit


@click.command()
@click.argument("index")
@click.argument("query", required=False)
@click.option("--text", metavar="SENTENCE", help="Search by a sentence instead of QUERY.")
@click.option(
    "--model",
    help="Recognizer of the index, for --text, if it was moved. [recorded in the index]",
)
@click.option("-k", type=int, default=20, show_default=True, help="Maximum number of images.")
@index_root_option
@with_terminal_options
def search(
    terminal: Terminal,
    index: str,
    query: str | None,
    text: str | None,
    model: str | None,
    k: int,
    root: str | None,
) -> None:
    """Search an index by several labels or by a sentence.

    QUERY lists wanted labels and, after !, unwanted labels, such as "spoon & hot dog & !knife".
    The result contains the probability that an image matches the whole query, and the
    probability of each label.

    With --text "two ducks on a pond", the result contains the similarity of each image to the
    sentence and, if the method estimates it, the uncertainty of the similarity. A similarity is
    not a probability.
    """
    from surelabel.retrieval import Index

    if (query is None) == (text is None):
        raise click.UsageError(
            f"search needs either QUERY or --text; got {'none' if text is None else 'both'}."
        )
    if model is not None and text is None:
        raise click.UsageError("--model applies to --text only; a QUERY needs no recognizer.")
    opened = Index.open(index, root=root)
    if text is not None:
        from surelabel.recognizer import recognizer_of_index, search_by_sentence

        recognizer = recognizer_of_index(opened, model, device=terminal.device)
        found = search_by_sentence(opened, recognizer, text, k=k)
        terminal.print_result([vars(hit) for hit in found], format_sentence_search_hits(found))
        return
    hits = opened.search(str(query), k=k)
    value = [{"path": h.path, "probability": h.probability, "terms": h.terms} for h in hits]
    terminal.print_result(value, format_search_hits(hits))


def format_search_hits(hits: Sequence["Hit"]) -> str:
    """Format a table of images: probability of the query, probability of each label, and path."""
    if not hits:
        return "The index is empty."
    rows = [[f"{h.probability:.3f}", *(f"{p:.3f}" for p in h.terms.values()), h.path] for h in hits]
    return format_terminal_table(["all", *hits[0].terms, "path"], rows)


def format_sentence_search_hits(hits: Sequence["SentenceHit"]) -> str:
    """Format a table of images: similarity to the sentence, uncertainty if estimated, and path."""
    if not hits:
        return "The index is empty."
    if hits[0].uncertainty is None:
        rows = [[f"{h.similarity:.3f}", h.path] for h in hits]
        return format_terminal_table(["similarity", "path"], rows)
    rows = [[f"{h.similarity:.3f}", f"{h.uncertainty:.3g}", h.path] for h in hits]
    return format_terminal_table(["similarity", "uncertainty", "path"], rows)
