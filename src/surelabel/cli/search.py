"""Define ``surelabel search``, which searches an index by labels, sentences and filters."""

from collections.abc import Mapping, Sequence
from math import exp
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
from surelabel.cli.output_paths import validate_terminal_model_path, validate_terminal_output_path
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
    from surelabel.retrieval import Hit, Index, Query
    from surelabel.retrieval.query_encoding import QueryEncoder
    from surelabel.retrieval.shard_search import SearchStep

DEFAULT_HITS = 20  # maximum number of images if no option limits the result
QUERY_GALLERY = (
    "The large number is the probability that the image matches the whole query. Below this "
    "number are the probabilities of the terms; an unwanted term begins with !."
)


@click.command()
@click.argument("indexes_and_query", nargs=-1, required=True, metavar="INDEX... [QUERY]")
@click.option(
    "--text",
    metavar="SENTENCE",
    help='Search by a sentence instead of QUERY; short for the query ~"SENTENCE".',
)
@click.option(
    "--model",
    "text_model",
    callback=validate_terminal_model_path,
    help="Recognizer of the index, which sentences, like: and --max-wrong need. Give this "
    "option if the recognizer was moved. [recorded in the index]",
)
@click.option(
    "-k",
    "--limit",
    "k",
    type=click.IntRange(1),
    help="Maximum number of images. [20; no maximum with --precision or --min-probability]",
)
@click.option(
    "--offset",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Leave out the N best images.",
)
@click.option(
    "--precision",
    type=SHARE,
    help="Return the longest list whose mean probability is at least this value. The mean "
    "probability is the expected precision, which is an estimate and no guarantee.",
)
@click.option(
    "--min-probability",
    type=OperatingPointRange(0, 1),
    help="Return only images that match QUERY with at least this probability.",
)
@guarantee_calibration_options(
    required=False,
    default_max_wrong=None,
    help_text="Guarantee that at most this share of the returned images is expected not to "
    "match QUERY. The guarantee needs --calibration.",
)
@click.option("--explain", is_flag=True, help="Print the steps of the search instead of its hits.")
@click.option(
    "--link-to",
    type=click.Path(),
    metavar="FOLDER",
    callback=validate_terminal_output_path,
    help="Write symbolic links to the images of the result to a new or empty FOLDER.",
)
@click.option(
    "--cluster",
    metavar="local|auto|HOST:PORT",
    help="Search each INDEX in a process of a Ray cluster. Each machine must have access to the "
    "folders.",
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
    offset: int,
    precision: float | None,
    min_probability: float | None,
    max_wrong: float | None,
    calibration: str | None,
    calibration_scores: str | None,
    explain: bool,
    link_to: str | None,
    cluster: str | None,
    images_root: str | None,
    gallery: str | None,
    open_gallery: bool,
    root: str | None,
) -> None:
    """Search an index by labels, sentences and filters.

    Several indexes of parts of a collection, with the same recognizer, are searched as one.

    \b
    QUERY combines terms with & (and), | (or), ! (not) and parentheses:
      spoon & hot dog & !knife          labels
      (spoon | fork) & dog>0.8          a label with a minimum probability
      ~"two ducks on a pond"            a sentence
      path:holiday/* & date>=2024-05    path, date; also width and height
      like:duck.jpg                     the images most similar to an image

    A label that contains one of & | ! ( ) < > ~ : is written in double quotes. The result contains
    the probability that an image matches the whole query, and the probability of each label and
    sentence.

    With --max-wrong 0.1 and --calibration, at most 10 % of the images in the result are expected
    not to match QUERY.
    """
    guarantee = {
        "--max-wrong": max_wrong,
        "--calibration": calibration,
        "--calibration-scores": calibration_scores,
        "--images-root": images_root,
    }
    folders, query_text = split_search_arguments(indexes_and_query, text)
    check_search_options(query_text, text)
    check_guarantee_options(guarantee, k, offset, precision, min_probability, explain)
    check_sharded_search_options(len(folders), max_wrong, cluster)
    check_open_gallery_option(gallery, open_gallery=open_gallery)
    if explain and (gallery or link_to):
        raise click.UsageError("--explain finds no images; remove --gallery and --link-to.")

    from surelabel.retrieval import Index, parse
    from surelabel.retrieval.deferred_encoder import DeferredQueryEncoder
    from surelabel.retrieval.query_terms import SentenceTerm

    if text is not None:
        query_text = str(SentenceTerm(text))
    query = parse(str(query_text))
    needs_encoder = has_sentence(query) or query.like is not None
    if text_model is not None and max_wrong is None and not needs_encoder:
        raise click.UsageError(
            "--model applies to sentences, like: and --max-wrong only; labels need no recognizer. "
            "Remove --model."
        )
    if k is None and precision is None and min_probability is None:
        k = DEFAULT_HITS
    if max_wrong is not None and calibration is not None:
        sources = (calibration, calibration_scores, images_root)
        index = Index.open(folders[0], root=root)
        hits, notes = search_with_max_wrong(terminal, index, query, max_wrong, sources, text_model)
    else:
        with open_searched_index(terminal, folders, root, cluster) as opened:
            encoder = None
            if needs_encoder:
                encoder = DeferredQueryEncoder(
                    lambda: load_query_encoder(terminal, folders[0], root, text_model)
                )
            if explain:
                steps = opened.explain(query, (k or DEFAULT_HITS) + offset, encoder=encoder)
                print_search_steps(terminal, query, steps)
                return
            hits = opened.search(
                query,
                k,
                min_probability=min_probability or 0.0,
                precision=precision,
                offset=offset,
                encoder=encoder,
            )
            notes = describe_search_result(
                opened, query, hits, precision, min_probability, offset, encoder
            )
    if link_to:
        notes.append(describe_linked_hits(hits, link_to))
    print_search_hits(terminal, hits, query, notes)
    if gallery:
        write_search_gallery(terminal, gallery, query, hits, notes, open_gallery)


def has_sentence(query: "Query") -> bool:
    """Return whether a query contains a sentence."""
    from surelabel.retrieval.query_terms import SentenceTerm

    return any(isinstance(term, SentenceTerm) for term in query.terms)


def load_query_encoder(
    terminal: Terminal, folder: str, root: str | None, model: str | None
) -> "QueryEncoder":
    """Return the recognizer of an index, for the sentences and the example image of a query.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the index.
        root: Root folder of the images, or None.
        model: Recognizer of the index. If None, the recorded recognizer is loaded.
    """
    terminal.print_import_status()

    from surelabel.recognizer import query_encoder
    from surelabel.retrieval import Index

    return query_encoder(Index.open(folder, root=root), model, device=terminal.device)


def check_search_options(query: str | None, text: str | None) -> None:
    """Check that there is one query.

    Raises:
        UsageError: If neither or both of QUERY and ``--text`` are given, or if the sentence is
            empty.
    """
    if (query is None) == (text is None):
        raise click.UsageError(
            f"search needs either QUERY or --text; got {'none' if text is None else 'both'}."
        )
    if text is not None and not text.strip():
        raise click.UsageError("--text must be a sentence; got an empty text. Write a sentence.")


def check_guarantee_options(
    guarantee: Mapping[str, float | str | None],
    k: int | None,
    offset: int,
    precision: float | None,
    min_probability: float | None,
    explain: bool,
) -> None:
    """Check that the options of a guarantee are given together, and without other limits.

    Args:
        guarantee: Values of the options of the guarantee by name, first ``--max-wrong``.
        k: Value of ``--limit``.
        offset: Value of ``--offset``.
        precision: Value of ``--precision``.
        min_probability: Value of ``--min-probability``.
        explain: Value of ``--explain``.

    Raises:
        UsageError: If an option is missing, or excludes another option.
    """
    if guarantee["--max-wrong"] is None:
        for option, value in guarantee.items():
            if value is not None:
                raise click.UsageError(f"{option} applies to --max-wrong only; add --max-wrong.")
        return
    if guarantee["--calibration"] is None:
        raise click.UsageError("--max-wrong needs an annotated sample; add --calibration DATASET.")
    limits = {
        "--limit": k,
        "--offset": offset or None,
        "--precision": precision,
        "--min-probability": min_probability,
        "--explain": explain or None,
    }
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
        The accepted images, and sentences on the numbers of images and on the bound.
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
    left_out = f", {result.left_out:,} with known targets left out" if result.left_out else ""
    notes = [
        f"{len(result.hits):,} of {format_count(result.images, 'image')} are accepted{left_out}; "
        f"{result.matches:,} of {format_count(result.calibration_images, 'calibration image')} "
        "match.",
        result.guarantee,
    ]
    if not result.hits:
        notes.append(
            "In the calibration images, no list has a sufficiently small share of images that do "
            "not match. Annotate more random images, or allow a larger share."
        )
    return result.hits, notes


def print_search_steps(terminal: Terminal, query: "Query", steps: "Sequence[SearchStep]") -> None:
    """Print the steps of a search, with one line for each shard and combination of filters."""
    values = [
        {
            "index": step.folder,
            "shard": step.shard,
            "formula": step.formula,
            "method": step.plan.method,
            "images": step.plan.n_allowed,
            "rows": step.plan.n_read,
            "floor": exp(step.plan.floor),
        }
        for step in steps
    ]
    lines = [f"Query: {query}", *map(str, steps)]
    if not steps:
        lines.append("No image matches the filters.")
    terminal.print_result({"query": str(query), "steps": values}, "\n".join(lines))


def describe_linked_hits(hits: "Sequence[Hit]", folder: str) -> str:
    """Write links to the images of a result, and return a sentence on their number."""
    from surelabel.retrieval.hit_links import link_hits

    without_file = link_hits(hits, folder)
    text = f"{format_count(len(hits) - len(without_file), 'link')} written to {folder}."
    if without_file:
        text += (
            f" {format_count(len(without_file), 'image')} without a separate file, such as "
            f"{without_file[0]}."
        )
    return text


def describe_search_result(
    index: "SearchedIndex",
    query: "Query",
    hits: "Sequence[Hit]",
    precision: float | None,
    min_probability: float | None,
    offset: int,
    encoder: "QueryEncoder | None",
) -> list[str]:
    """Return sentences on an empty result, the expected precision, and an unverified calibration.

    Args:
        index: Index of the search.
        query: Query of the search.
        hits: Result of the search.
        precision: Minimum expected precision of the result, or None.
        min_probability: Minimum probability of each image, or None.
        offset: Number of the best images that were left out.
        encoder: Recognizer of the index, or None.
    """
    from surelabel.records import calibration_provenance

    sentences = []
    if not len(index):
        sentences.append("The index is empty.")
    elif not hits:
        is_offset_too_large = offset and index.search(
            query,
            1,
            min_probability=min_probability or 0.0,
            precision=precision,
            encoder=encoder,
        )
        if is_offset_too_large:
            return [f"--offset {offset:,} leaves out all images."]
        best = index.search(query, 1, encoder=encoder)
        minimum = {"probability": min_probability, "expected precision": precision}
        minima = [f"the minimum {name} {value}" for name, value in minimum.items() if value]
        if not best:
            sentences.append("No image matches the filters of the query.")
        else:
            sentences.append(
                f"No image reaches {' and '.join(minima)}; the highest probability is "
                f"{best[0].probability:.3g}."
            )
    elif precision is not None and offset:
        sentences.append(
            f"The expected precision of at least {precision} applies to the list that includes "
            f"the {format_count(offset, 'image')} left out by --offset."
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
    """Print the hits of a search, and notes on the result.

    Without ``--json``, the notes are a part of the result; with ``--json``, they are status lines.

    Args:
        terminal: Object that prints results, status lines and progress.
        hits: Images, sorted by decreasing probability.
        query: Query of the search.
        notes: Sentences on the result.
    """
    table = [format_search_hits(hits, query)] if hits else []
    terminal.print_result([hit.as_dict() for hit in hits], "\n".join([*table, *notes]))
    if terminal.as_json:
        for note in notes:
            terminal.print_status(note)


def format_search_hits(hits: Sequence["Hit"], query: "Query") -> str:
    """Format a table of images: probability of the query, probability of each term, and path.

    The column ``!LABEL`` of an unwanted label contains the probability that the label is negative.
    If the query has neither labels nor sentences, the table has no probabilities.

    Args:
        hits: At least one image.
        query: Query of the search.
    """
    from surelabel.retrieval.hits import hit_term_probabilities

    signs = [sign for _, sign in query.signed_terms]
    titles = [f"!{t}" if sign < 0 else t for t, sign in zip(hits[0].terms, signs, strict=True)]
    header = ["all"] if titles else []
    header += [*titles, *(f"uncertainty {title}" for title in hits[0].uncertainties)]
    if hits[0].similarity is not None:
        header.append("similarity")
    rows = [
        [
            *map(_format_search_probability, [hit.probability] if titles else []),
            *map(_format_search_probability, hit_term_probabilities(hit, query)),
            *(f"{variance:.3g}" for variance in hit.uncertainties.values()),
            *([] if hit.similarity is None else [f"{hit.similarity:.3f}"]),
            hit.path,
        ]
        for hit in hits
    ]
    return format_terminal_table([*header, "path"], rows)


def _format_search_probability(probability: float) -> str:
    """Return a probability with three decimals, or with two digits if it is smaller."""
    is_small = 0 < probability < 0.0005
    return f"{probability:.1e}" if is_small else f"{probability:.3f}"


def write_search_gallery(
    terminal: Terminal,
    path: str,
    query: "Query",
    hits: "Sequence[Hit]",
    notes: Sequence[str],
    open_gallery: bool,
) -> None:
    """Write a gallery of the hits of a search, with notes on the result."""
    from surelabel.report import gallery_image_of_hit

    sentences = [QUERY_GALLERY, *notes]
    images = [gallery_image_of_hit(hit, query) for hit in hits]
    write_gallery(terminal, path, str(query), sentences, images, open_gallery=open_gallery)
