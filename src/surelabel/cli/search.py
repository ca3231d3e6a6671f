"""``surelabel search``: search an index by labels or by a sentence."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from surelabel.cli.gallery import check_open_gallery_option, gallery_options, write_gallery
from surelabel.cli.guarantee_calibration import (
    guarantee_calibration_options,
    load_guarantee_calibration,
)
from surelabel.cli.index import index_root_option
from surelabel.cli.input_options import images_root_input_option, max_image_memory_input_option
from surelabel.cli.operating_point_options import SHARE, OperatingPointRange
from surelabel.cli.output_paths import validate_terminal_model_path
from surelabel.cli.searched_indexes import (
    check_sharded_search_options,
    open_searched_index,
    split_search_arguments,
)
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.cli.unlabelled_calibration import NOT_VERIFIED
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.cli.searched_indexes import SearchedIndex
    from surelabel.recognizer import SentenceHit
    from surelabel.retrieval import Hit, Index, Query, ShardedIndex

DEFAULT_HITS = 20  # maximum number of images if no option limits the result
QUERY_GALLERY = (
    "The large number is the probability that the image matches the whole query. Below it are the "
    "probabilities of the terms; the term of an unwanted label begins with !."
)


@click.command()
@click.argument("indexes_and_query", nargs=-1, required=True, metavar="INDEX... [QUERY]")
@click.option("--text", metavar="SENTENCE", help="Search by a sentence instead of QUERY.")
@click.option(
    "--model",
    "text_model",
    callback=validate_terminal_model_path,
    help="Recognizer of the index, for --text or --max-wrong, if it was moved. [recorded in the "
    "index]",
)
@click.option(
    "-k",
    type=click.IntRange(1),
    help="Maximum number of images. [20; no maximum with --precision or --min-probability]",
)
@click.option(
    "--precision",
    type=SHARE,
    help="Return the longest list whose mean probability is at least this value: its expected "
    "precision, which is an estimate and no guarantee.",
)
@click.option(
    "--min-probability",
    type=OperatingPointRange(0, 1),
    help="Return only images that match QUERY with at least this probability.",
)
@guarantee_calibration_options(
    required=False,
    default_max_wrong=None,
    help_text="Return images of which at most this share is expected not to match QUERY: a "
    "guarantee, which needs --calibration.",
)
@click.option(
    "--cluster",
    metavar="local|auto|HOST:PORT",
    help="Search each INDEX in a process of a Ray cluster. Each machine sees the folders.",
)
@images_root_input_option
@max_image_memory_input_option
@gallery_options
@index_root_option
@with_terminal_options
def search(
    terminal: Terminal,
    indexes_and_query: tuple[str, ...],
    text: str | None,
    text_model: str | None,
    k: int | None,
    precision: float | None,
    min_probability: float | None,
    max_wrong: float | None,
    calibration: str | None,
    calibration_scores: str | None,
    cluster: str | None,
    images_root: str | None,
    gallery: str | None,
    open_gallery: bool,
    root: str | None,
) -> None:
    """Search an index by several labels or by a sentence.

    Several indexes of parts of a collection, with the same recognizer, are searched as one.

    QUERY lists wanted labels and, after !, unwanted labels, such as "spoon & hot dog & !knife".
    The result contains the probability that an image matches the whole query, and the
    probability of each label.

    With --text "two ducks on a pond", the result contains the similarity of each image to the
    sentence and, if the method estimates it, the uncertainty of the similarity. A similarity is
    not a probability.

    With --max-wrong 0.1 and --calibration, the result contains the images that match with a bound
    on the expected share of wrong ones.
    """
    guarantee = {
        "--max-wrong": max_wrong,
        "--calibration": calibration,
        "--calibration-scores": calibration_scores,
        "--images-root": images_root,
    }
    folders, query = split_search_arguments(indexes_and_query, text)
    check_search_options(query, text, text_model, precision, min_probability, max_wrong)
    check_guarantee_options(guarantee, k, precision, min_probability)
    check_sharded_search_options(len(folders), text, max_wrong, cluster)
    check_open_gallery_option(gallery, open_gallery=open_gallery)

    from surelabel.retrieval import Index, ShardedIndex, parse

    if text is not None:
        k = DEFAULT_HITS if k is None else k
        sharded = ShardedIndex.open(folders, root=root)
        sentence_hits, note = search_by_text_option(terminal, sharded, text, text_model, k)
        if gallery:
            write_sentence_gallery(terminal, gallery, text, sentence_hits, note, open_gallery)
        return
    if k is None and precision is None and min_probability is None:
        k = DEFAULT_HITS
    parsed = parse(str(query))
    if max_wrong is not None and calibration is not None:
        sources = (calibration, calibration_scores, images_root)
        hits, notes = search_with_max_wrong(
            terminal, Index.open(folders[0], root=root), parsed, max_wrong, sources, text_model
        )
    else:
        with open_searched_index(terminal, folders, root, cluster) as opened:
            hits = opened.search(
                parsed, k, min_probability=min_probability or 0.0, precision=precision
            )
            notes = describe_search_result(opened, parsed, hits, precision, min_probability)
    print_search_hits(terminal, hits, parsed, notes)
    if gallery:
        write_search_gallery(terminal, gallery, parsed, hits, notes, open_gallery)


def check_search_options(
    query: str | None,
    text: str | None,
    model: str | None,
    precision: float | None,
    min_probability: float | None,
    max_wrong: float | None,
) -> None:
    """Check that options of a search by labels and of a search by a sentence are not combined.

    Raises:
        UsageError: If options exclude each other.
    """
    if (query is None) == (text is None):
        raise click.UsageError(
            f"search needs either QUERY or --text; got {'none' if text is None else 'both'}."
        )
    if model is not None and text is None and max_wrong is None:
        raise click.UsageError(
            "--model applies to --text and --max-wrong only; a QUERY needs no recognizer."
        )
    minimum = {
        "--precision": precision,
        "--min-probability": min_probability,
        "--max-wrong": max_wrong,
    }
    for option, value in minimum.items():
        if text is not None and value is not None:
            raise click.UsageError(
                f"{option} needs probabilities; --text returns similarities, which are no "
                f"probabilities. Remove {option}, or search by labels."
            )


def check_guarantee_options(
    guarantee: Mapping[str, float | str | None],
    k: int | None,
    precision: float | None,
    min_probability: float | None,
) -> None:
    """Check that the options of a guarantee are given together, and without other limits.

    Args:
        guarantee: Values of the options of the guarantee by name, first ``--max-wrong``.
        k: Value of ``-k``.
        precision: Value of ``--precision``.
        min_probability: Value of ``--min-probability``.

    Raises:
        UsageError: If an option is missing, or excludes another one.
    """
    if guarantee["--max-wrong"] is None:
        for option, value in guarantee.items():
            if value is not None:
                raise click.UsageError(f"{option} applies to --max-wrong only; add --max-wrong.")
        return
    if guarantee["--calibration"] is None:
        raise click.UsageError("--max-wrong needs --calibration DATASET, an annotated sample.")
    limits = {"-k": k, "--precision": precision, "--min-probability": min_probability}
    for option, value in limits.items():
        if value is not None:
            raise click.UsageError(
                f"--max-wrong selects the images itself, so its bound would not hold for the "
                f"images of {option}. Remove {option}."
            )


def search_with_max_wrong(
    terminal: Terminal,
    index: "Index",
    query: "Query",
    max_wrong: float,
    sources: tuple[str, str | None, str | None],
    model: str | None,
) -> "tuple[Sequence[Hit], list[str]]":
    """Search with a bound on the expected share of images that do not match.

    Args:
        terminal: Object that prints results, status lines and progress.
        index: Index of the search.
        query: Query of the search.
        max_wrong: Bound of the expected share of images that do not match, in (0, 1).
        sources: Values of ``--calibration``, ``--calibration-scores`` and ``--images-root``.
        model: Recognizer of the index. If None, the recorded recognizer is loaded.

    Returns:
        The accepted images, and sentences on the numbers of images and on the promise.
    """
    terminal.print_import_status()

    from surelabel.recognizer import recognizer_of_index, search_with_guarantee

    dataset, scores, images_root = sources
    recorded = model or (index.recognizer.model if index.recognizer else "")
    labelled = load_guarantee_calibration(terminal, dataset, scores, recorded, images_root, {})
    recognizer = recognizer_of_index(index, model, device=terminal.device)
    with terminal.progress("Encoding") as progress:
        result = search_with_guarantee(
            index, query, labelled, recognizer=recognizer, max_wrong=max_wrong, progress=progress
        )
    left_out = f", {result.left_out:,} left out with known targets" if result.left_out else ""
    notes = [
        f"{len(result.hits):,} of {format_count(result.images, 'image')} accepted{left_out}; "
        f"{result.matches:,} of {format_count(result.calibration_images, 'calibration image')} "
        "match.",
        result.promise,
    ]
    if not result.hits:
        notes.append(
            "No list of images has a sufficiently small share of wrong ones in the calibration "
            "images. Annotate more random images, or allow a larger share."
        )
    return result.hits, notes


def search_by_text_option(
    terminal: Terminal, index: "ShardedIndex", text: str, model: str | None, k: int
) -> "tuple[list[SentenceHit], str]":
    """Search indexes by a sentence, print the hits and the scale of the similarity.

    Args:
        terminal: Object that prints results, status lines and progress.
        index: One or more indexes with image vectors.
        text: Sentence.
        model: Recognizer of the index. If None, the recorded recognizer is loaded.
        k: Maximum number of images, >= 1.

    Returns:
        The hits, and a sentence on the scale of their similarity.
    """
    terminal.print_import_status()

    from surelabel.recognizer import (
        describe_similarity,
        recognizer_of_index,
        search_shards_by_sentence,
    )

    recognizer = recognizer_of_index(index.indexes[0], model, device=terminal.device)
    hits = search_shards_by_sentence(index, recognizer, text, k=k)
    note = describe_similarity(recognizer)
    lines = [format_sentence_search_hits(hits), *([note] if hits else [])]
    terminal.print_result([vars(hit) for hit in hits], "\n".join(lines))
    if terminal.as_json:
        terminal.print_status(note)
    return hits, note


def describe_search_result(
    index: "SearchedIndex",
    query: "Query",
    hits: "Sequence[Hit]",
    precision: float | None,
    min_probability: float | None,
) -> list[str]:
    """Return sentences on an empty result, the expected precision, and a calibration to verify.

    Args:
        index: Index of the search.
        query: Query of the search.
        hits: Result of the search.
        precision: Minimum expected precision of the result, or None.
        min_probability: Minimum probability of each image, or None.
    """
    from surelabel.records import calibration_provenance

    sentences = []
    if not len(index):
        sentences.append("The index is empty.")
    elif not hits:
        best = index.search(query, 1)[0].probability
        minimum = {"probability": min_probability, "expected precision": precision}
        minima = [f"the minimum {name} {value}" for name, value in minimum.items() if value]
        sentences.append(
            f"No image reaches {' and '.join(minima)}; the highest probability is {best:.3g}."
        )
    elif precision is not None:
        mean = sum(hit.probability for hit in hits) / len(hits)
        images = format_count(len(hits), "image")
        sentences.append(
            f"The expected precision of {images} is {mean:.3f}, the mean probability. It is an "
            "estimate, which is as reliable as the calibration, and no guarantee."
        )
    if calibration_provenance(index.calibration) == "no labels":
        sentences.append(f"Calibration: {index.calibration}. {NOT_VERIFIED}")
    return sentences


def print_search_hits(
    terminal: Terminal, hits: "Sequence[Hit]", query: "Query", notes: Sequence[str]
) -> None:
    """Print the hits of a search by labels, and notes on the result.

    Without ``--json``, the notes are a part of the result; with ``--json``, they are status lines.

    Args:
        terminal: Object that prints results, status lines and progress.
        hits: Images, sorted by decreasing probability.
        query: Query of the search.
        notes: Sentences on the result.
    """
    value = [{"path": h.path, "probability": h.probability, "terms": h.terms} for h in hits]
    table = [format_search_hits(hits, len(query.wanted))] if hits else []
    terminal.print_result(value, "\n".join([*table, *notes]))
    if terminal.as_json:
        for note in notes:
            terminal.print_status(note)


def format_search_hits(hits: Sequence["Hit"], n_wanted: int) -> str:
    """Format a table of images: probability of the query, probability of each term, and path.

    The probability of an unwanted label is that of its absence, with the title ``!LABEL``.

    Args:
        hits: At least one image; its terms are the wanted labels before the unwanted ones.
        n_wanted: Number of wanted labels of the query.
    """
    names = list(hits[0].terms)
    header = ["all", *names[:n_wanted], *(f"!{name}" for name in names[n_wanted:]), "path"]
    rows = [
        [
            _format_search_probability(hit.probability),
            *(
                _format_search_probability(p if number < n_wanted else 1 - p)
                for number, p in enumerate(hit.terms.values())
            ),
            hit.path,
        ]
        for hit in hits
    ]
    return format_terminal_table(header, rows)


def _format_search_probability(probability: float) -> str:
    """Return a probability with three decimals, or with two digits if it is smaller."""
    return f"{probability:.3f}" if probability >= 0.0005 else f"{probability:.1e}"


def format_sentence_search_hits(hits: Sequence["SentenceHit"]) -> str:
    """Format a table of images: similarity to the sentence, uncertainty if estimated, and path."""
    if not hits:
        return "The index is empty."
    if hits[0].uncertainty is None:
        rows = [[f"{h.similarity:.3f}", h.path] for h in hits]
        return format_terminal_table(["similarity", "path"], rows)
    rows = [[f"{h.similarity:.3f}", f"{h.uncertainty:.3g}", h.path] for h in hits]
    return format_terminal_table(["similarity", "uncertainty", "path"], rows)


def write_search_gallery(
    terminal: Terminal,
    path: str,
    query: "Query",
    hits: "Sequence[Hit]",
    notes: Sequence[str],
    open_gallery: bool,
) -> None:
    """Write a gallery of the hits of a search by labels, with notes on the result."""
    from surelabel.report import gallery_image_of_hit

    sentences = [QUERY_GALLERY, *notes]
    images = [gallery_image_of_hit(hit, query) for hit in hits]
    write_gallery(terminal, path, str(query), sentences, images, open_gallery=open_gallery)


def write_sentence_gallery(
    terminal: Terminal,
    path: str,
    text: str,
    hits: "Sequence[SentenceHit]",
    note: str,
    open_gallery: bool,
) -> None:
    """Write a gallery of the hits of a search by a sentence, with their similarities."""
    from surelabel.report import gallery_image_of_sentence_hit

    images = list(map(gallery_image_of_sentence_hit, hits))
    write_gallery(terminal, path, text, [note], images, open_gallery=open_gallery)
