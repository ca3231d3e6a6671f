"""Evaluate retrieval between images and captions, in the command ``evaluate``."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.caption_retrieval import caption_retrieval_as_json, caption_retrieval_as_text
from surelabel.cli.input_options import load_pairs_from_input_options
from surelabel.cli.terminal import Command, Terminal
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.recognizer_folder_checks import is_recognizer_path
from surelabel.storage.image_paths import is_container_path

if TYPE_CHECKING:
    from surelabel.evaluation import PairEvaluation, RelevanceFileMetrics
    from surelabel.recognizer import PairScores, Recognizer


def pair_evaluation_options(function: Command) -> Command:
    """Add the options of an evaluation on captions."""
    captions = click.option(
        "--captions",
        is_flag=True,
        help="Measure retrieval between images and captions. [if DATASET is a caption file]",
    )
    relevance = click.option(
        "--relevance",
        "relevance_files",
        type=click.Path(exists=True, dir_okay=False),
        multiple=True,
        metavar="FILE",
        help="File with the relevance of captions to images: CSV with the header "
        "image_id,caption_id,relevance, or JSON of ECCV Caption or CxC. The option may be "
        "repeated for JSON files.",
    )
    return captions(relevance(function))


def is_pair_evaluation(dataset: str, *, captions: bool, relevance_files: Sequence[str]) -> bool:
    """Return whether a dataset is evaluated by its captions, from the options or from its content.

    Args:
        dataset: Argument of the command.
        captions: Value of the option ``--captions``.
        relevance_files: Values of the option ``--relevance``.
    """
    from surelabel.data import has_captioned_images, is_pair_archive

    if captions or relevance_files:
        return True
    if not os.path.isfile(dataset) or is_container_path(dataset) or dataset.endswith(".npy"):
        return False
    if dataset.endswith(".npz"):
        return is_pair_archive(dataset)
    return has_captioned_images(dataset)


def check_pair_evaluation_options(**options: Any) -> None:
    """Check that no option is given that applies only to labels.

    Args:
        options: Values of the options that apply only to labels, by name.

    Raises:
        UsageError: If an option is given.
    """
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise click.UsageError(
            f"{', '.join(given)} cannot be combined with captions, which are evaluated without "
            f"labels. Remove {', '.join(given)}."
        )


def run_pair_evaluation(
    terminal: Terminal,
    model: str,
    dataset: str,
    *,
    relevance_files: Sequence[str],
    images_root: str | None,
    report_folder: str | None,
) -> None:
    """Evaluate a model on captions, print the metrics and write the report.

    Args:
        terminal: Object that prints results, status lines and progress.
        model: Folder of a saved recognizer, or name of an encoder.
        dataset: Caption file, split of a collection, or archive of pairs.
        relevance_files: Values of the option ``--relevance``.
        images_root: Root folder of relative image paths.
        report_folder: Folder of the report. If None, no report is written.
    """
    pairs = load_pairs_from_input_options(dataset, images_root)
    terminal.print_import_status()

    from surelabel.recognizer import score_pairs
    from surelabel.report import check_report_folder, report_captions
    from surelabel.report.caption_retrieval_table import RELEVANCE_FILE_HEADER, relevance_file_rows
    from surelabel.report.json_values import strict_json_value

    if report_folder:
        check_report_folder(report_folder)
    recognizer = _resolve_pair_model(model, terminal.device)
    with terminal.progress("Evaluating") as progress:
        scored = score_pairs(recognizer, pairs, progress=progress)
    evaluation, files = _evaluate_scored_pairs(scored, relevance_files)
    relevance_rows = relevance_file_rows(files)
    if report_folder:
        page = report_captions(
            evaluation, scored.pairs, report_folder, model=model, relevance_rows=relevance_rows
        )
        terminal.print_status(f"Report: {page}")
    value = caption_retrieval_as_json(evaluation)
    text = [caption_retrieval_as_text(evaluation)]
    if files:
        value["relevance_files"] = [file.as_dict() for file in files]
        text += ["", format_terminal_table(list(RELEVANCE_FILE_HEADER), relevance_rows)]
    terminal.print_result(strict_json_value(value), "\n".join(text))


def _resolve_pair_model(model: str, device: str) -> "Recognizer":
    """Return a saved recognizer, or a zero-shot recognizer, which scores pairs by cosines."""
    from surelabel.encoders import reference_names
    from surelabel.recognizer import resolve_model

    if is_recognizer_path(model):
        return resolve_model(model, device=device)
    labels = reference_names()[:1]  # pairs are scored without labels
    return resolve_model(model, labels, device=device)


def _evaluate_scored_pairs(
    scored: "PairScores", relevance_files: Sequence[str]
) -> "tuple[PairEvaluation, list[RelevanceFileMetrics]]":
    """Return the evaluation with graded relevance, and the metrics of files with ids."""
    from surelabel.data import read_graded_relevance, read_relevance
    from surelabel.errors import InputError
    from surelabel.evaluation import evaluate_pair_scores, evaluate_relevance_file
    from surelabel.records import Pairs

    pairs, relevance = scored.pairs, None
    if not isinstance(pairs, Pairs):
        if relevance_files:
            raise InputError(
                "--relevance requires captions with ids; got vectors. Remove --relevance."
            )
        return evaluate_pair_scores(scored.scores, pairs, variances=scored.variances), []
    tables = [path for path in relevance_files if path.lower().endswith(".csv")]
    if len(tables) > 1:
        raise InputError(
            f"--relevance accepts one CSV file; got {', '.join(tables)}. Give one of these files."
        )
    if tables:
        relevance = read_graded_relevance(tables[0], pairs)
    evaluation = evaluate_pair_scores(
        scored.scores, pairs, variances=scored.variances, relevance=relevance
    )
    files = [
        evaluate_relevance_file(os.path.basename(path), scored.scores, pairs, read_relevance(path))
        for path in relevance_files
        if path not in tables
    ]
    return evaluation, files
