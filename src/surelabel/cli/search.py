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
    help="Recognizer of the index, for sentences, like: and --max-wrong. Give this option if the "
    "recognizer was moved. [recorded in the index]",
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
    help="Omit the first N images of the result.",
)
@click.option(
    "--precision",
    type=SHARE,
    help="Return the longest list whose mean probability is at least this value. The mean "
    "probability is the expected precision, which is an estimate without a guarantee.",
)
@click.option(
    "--min-probability",
    type=OperatingPointRange(0, 1),
    help="Return only images that match QUERY with at least this probability.",
)
@guarantee_calibration_options(
    required=False,
    default_max_wrong=None,
    help_text="Maximum expected share of returned images that do not match QUERY. This guarantee "
    "requires --calibration.",
)
@click.option("--explain", is_flag=True, help="Print the steps of the search instead of its hits.")
@click.option(
    "--link-to",
    type=click.Path(),
    metavar="FOLDER",
    callback=validate_terminal_output_path,
    help="Create symbolic links to the images of the result in a new or empty FOLDER.",
)
@click.option(
    "--cluster",
    metavar="local|auto|HOST:PORT",
    help="Search each INDEX in a process of a Ray cluster. Each machine of the cluster must have "
    "access to all INDEX folders.",
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
        raise click.UsageError(
            "--explain returns no images, so it cannot be combined with --gallery or --link-to. "
            "Remove --explain, or remove --gallery and --link-to."
        )

    from surelabel.retrieval import Index, parse
    from surelabel.retrieval.deferred_encoder import DeferredQueryEncoder
    from surelabel.retrieval.query_terms import SentenceTerm

    if text is not None:
        query_text = str(SentenceTerm(text))
    query = parse(str(query_text))
    needs_encoder = has_sentence(query) or query.like is not None
    if text_model is not None and max_wrong is None and not needs_encoder:
        raise click.UsageError(
            "--model applies only to sentences, like: and --max-wrong; got a query without "
            "sentences and without like:. Remove --model."
        )
    if k is None and precision is None and min_probability is None:
        k = DEFAULT_HITS
    if max_wrong is not None and calibration is not None:
        sources = (calibration, calibration_scores, images_root)
        index = Index.open(folders[0], root=root)
        hits, notes = search_with_max_wrong(terminal, index, query, max_wrong, sources, text_model)
        is_approximate = False
    else:
        with open_searched_index(terminal, folders, root, cluster) as opened:
            encoder = None
            if needs_encoder:
                encoder = DeferredQueryEncoder(
                    lambda: load_query_encoder(terminal, folders[0], root, text_model)
                )
            approximations = opened.approximation(query).sentences
            if explain:
                steps = opened.explain(query, (k or DEFAULT_HITS) + offset, encoder=encoder)
                print_search_steps(terminal, query, steps, approximations)
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
            notes += approximations
            is_approximate = bool(approximations)
    if link_to:
        notes.append(describe_linked_hits(hits, link_to))
    print_search_hits(terminal, hits, query, notes, is_approximate=is_approximate)
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
            f"search requires either QUERY or --text; got {'neither' if text is None else 'both'}."
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
                raise click.UsageError(
                    f"{option} requires --max-wrong; got only {option}. Add --max-wrong, or remove "
                    f"{option}."
                )
        return
    if guarantee["--calibration"] is None:
        raise click.UsageError(
            "--max-wrong requires an annotated sample; got none. Add --calibration DATASET."
        )
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
                f"--max-wrong cannot be combined with {option}, because the bound holds only for "
                f"the complete list of accepted images. Remove {option}."
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
    notes = [
        f"{len(result.hits):,} of {format_count(result.images, 'image')} are accepted. "
        f"{result.matches:,} of {format_count(result.calibration_images, 'calibration image')} "
        "match the query.",
        result.guarantee,
    ]
    if result.left_out:
        notes.append(
            "Images not searched, because they are used for fitting or calibration: "
            f"{result.left_out:,}."
        )
    if not result.hits:
        notes.append(
            "No image is accepted, because the calibration images do not support the bound of "
            "--max-wrong. Annotate more random images, or give a higher --max-wrong."
        )
    return result.hits, notes


def print_search_steps(
    terminal: Terminal, query: "Query", steps: "Sequence[SearchStep]", notes: Sequence[str]
) -> None:
    """Print the steps of a search, with one line for each shard and combination of filters.

    Args:
        terminal: Object that prints results, status lines and progress.
        query: Query of the search.
        steps: Steps of the search.
        notes: Sentences on approximations of the index.
    """
    values = [
        {
            "index": step.folder,
            "shard": step.shard,
            "formula": step.formula,
            "method": step.plan.method,
            "images": step.plan.n_allowed,
            "rows": step.plan.n_read,
            "min_probability": exp(step.plan.floor),
        }
        for step in steps
    ]
    lines = [f"Query: {query}", *map(str, steps)]
    if not steps:
        lines.append("No image matches the filters.")
    terminal.print_result(
        {"query": str(query), "steps": values, "notes": notes}, "\n".join([*lines, *notes])
    )


def describe_linked_hits(hits: "Sequence[Hit]", folder: str) -> str:
    """Write links to the images of a result, and return a sentence on their number."""
    from surelabel.retrieval.hit_links import link_hits

    without_file = link_hits(hits, folder)
    text = f"{format_count(len(hits) - len(without_file), 'link')} written to {folder}."
    if without_file:
        text += (
            f" No link was written for {format_count(len(without_file), 'image')} without a "
            f"separate file, such as {without_file[0]}."
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
            return [f"--offset {offset:,} omits all images of the result. Give a smaller --offset."]
        best = index.search(query, 1, encoder=encoder)
        minimum = {"probability": min_probability, "expected precision": precision}
        minima = [f"the minimum {name} {value}" for name, value in minimum.items() if value]
        if not best:
            sentences.append("No image matches the filters of the query.")
        else:
            sentences.append(
                f"No image satisfies {' and '.join(minima)}; the highest probability is "
                f"{best[0].probability:.3g}."
            )
    elif precision is not None and offset:
        sentences.append(
            f"The expected precision of at least {precision} applies to the list that includes "
            f"the {format_count(offset, 'image')} omitted by --offset."
        )
    elif precision is not None:
        mean = sum(hit.probability for hit in hits) / len(hits)
        images = format_count(len(hits), "image")
        sentences.append(
            f"The expected precision of {images} is {mean:.3f}, the mean of their probabilities. "
            "This estimate is as reliable as the calibration, and it is not a guarantee."
        )
    if calibration_provenance(index.calibration) == "no labels":
        sentences.append(f"Calibration: {index.calibration}. {NOT_VERIFIED}")
    return sentences


def print_search_hits(
    terminal: Terminal,
    hits: "Sequence[Hit]",
    query: "Query",
    notes: Sequence[str],
    *,
    is_approximate: bool,
) -> None:
    """Print the hits of a search, and notes on the result.

    Without ``--json``, the notes are a part of the result; with ``--json``, they are status lines.
    With ``--json``, each hit of an approximate search has the field ``is_approximate``.

    Args:
        terminal: Object that prints results, status lines and progress.
        hits: Images, sorted by decreasing probability.
        query: Query of the search.
        notes: Sentences on the result.
        is_approximate: Whether the index stores only a part of the probabilities, or a graph was
            searched.
    """
    table = [format_search_hits(hits, query)] if hits else []
    mark = {"is_approximate": True} if is_approximate else {}
    terminal.print_result([hit.as_dict() | mark for hit in hits], "\n".join([*table, *notes]))
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
    """Return a probability with three decimals; below 0.0005, such as ``1.2e-05``."""
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
