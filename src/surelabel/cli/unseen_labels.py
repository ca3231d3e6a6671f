"""Define the option ``--unseen`` of ``evaluate`` for unseen classes, and format its results."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.evaluation import Evaluation, UnseenClassResults
    from surelabel.recognizer import LabelledInput, Recognizer
    from surelabel.report import UnseenClasses


def unseen_labels_option(function: Command) -> Command:
    """Add the option ``--unseen`` for labels that the model was not fitted on."""
    return click.option(
        "--unseen",
        metavar="LABELS|FILE|-",
        help="Labels of DATASET that MODEL was not fitted on. The labels are evaluated alone "
        "(zero-shot) and together with the labels of MODEL (generalized zero-shot).",
    )(function)


def check_unseen_labels_option(model: str, names: str | None, unseen: Sequence[str] | None) -> None:
    """Check that ``--unseen`` is not combined with ``--labels`` for a saved recognizer.

    Args:
        model: Encoder, or folder of a saved recognizer.
        names: Value of the option ``--labels``.
        unseen: Labels of the option ``--unseen``.

    Raises:
        UsageError: If ``--unseen`` and ``--labels`` are given for a saved recognizer.
    """
    if unseen is not None and names is not None and Path(model).is_dir():
        raise click.UsageError(
            "--labels would replace the seen classes of the saved recognizer. Remove --labels; "
            "--unseen adds the unseen classes."
        )


def exclude_unseen_labels(labels: Sequence[str], unseen: Sequence[str] | None) -> list[str]:
    """Return the seen labels of a dataset.

    Args:
        labels: Labels of the dataset.
        unseen: Unseen labels. Upper and lower case are not distinguished, and one alias of a label
            is sufficient.
    """
    from surelabel.data import label_spellings_to_align

    unseen_spellings = label_spellings_to_align(*unseen or ())
    return [label for label in labels if not label_spellings_to_align(label) & unseen_spellings]


def add_unseen_labels(
    recognizer: "Recognizer", unseen: Sequence[str], test_set: "LabelledInput"
) -> "Recognizer":
    """Return a recognizer with the seen labels, followed by the unseen labels.

    Args:
        recognizer: Recognizer with the seen labels.
        unseen: Unseen labels.
        test_set: Dataset with targets for each unseen label.

    Raises:
        InputError: If an unseen label is given twice, is also a seen label, or has no targets.
        ConfigError: If the method supports only the labels that it was fitted on.
    """
    from surelabel.data import Vocabulary, parse_label_names
    from surelabel.data.vocabularies import check_vocabulary_columns

    parse_label_names(unseen)  # validated separately, so that messages have their line numbers
    vocabulary = Vocabulary(tuple(recognizer.names_with_aliases), tuple(unseen))
    check_vocabulary_columns(vocabulary.unseen, test_set.names)
    return recognizer.with_names(vocabulary.names)


def evaluate_unseen_labels(evaluation: "Evaluation", n_seen: int) -> "UnseenClassResults":
    """Compute the metrics of seen and of unseen classes.

    Args:
        evaluation: Evaluation of the seen labels, followed by the unseen labels.
        n_seen: Number of seen labels.
    """
    from surelabel.evaluation import evaluate_unseen_classes

    predictions = evaluation.predictions
    return evaluate_unseen_classes(
        predictions.scores,
        evaluation.targets,
        range(n_seen),
        evaluation.known,
        predictions.probabilities if predictions.calibration else None,
    )


def unseen_labels_for_report(
    results: "UnseenClassResults | None", evaluation: "Evaluation", n_seen: int
) -> "UnseenClasses | None":
    """Convert the metrics of unseen classes for a report; if ``results`` is None, return None.

    Args:
        results: Metrics of seen and of unseen classes.
        evaluation: Evaluation of the seen labels, followed by the unseen labels.
        n_seen: Number of seen labels.
    """
    from surelabel.report import UnseenClasses

    return (
        None if results is None else UnseenClasses(evaluation.predictions.names[n_seen:], results)
    )


def unseen_labels_as_json(results: "UnseenClassResults | None") -> dict[str, Any]:
    """Return the metrics of unseen classes for ``--json``, if ``--unseen`` is given."""
    return {"open_vocabulary": asdict(results)} if results else {}


def unseen_labels_as_text(results: "UnseenClassResults | None") -> list[str]:
    """Return tables of the metrics of unseen classes, if ``--unseen`` is given."""
    if results is None:
        return []
    from surelabel.report.metric_descriptions import format_described_metric_value
    from surelabel.report.unseen_classes import (
        RANKING_COLUMNS,
        SEEN_UNSEEN_COLUMNS,
        unseen_classes_metric_table_rows,
        unseen_classes_ranking_table_rows,
    )

    zsl, gzsl, all_images = results.zsl, results.gzsl, results.zsl_all_images
    f1 = format_described_metric_value(all_images.achieved.micro[3].f1, "%")
    best_f1 = format_described_metric_value(all_images.perfect_ranking.micro[3].f1, "%")
    lines = [
        f"\nClasses: {gzsl.candidates - zsl.candidates} seen, {zsl.candidates} unseen.",
        format_terminal_table(RANKING_COLUMNS, unseen_classes_ranking_table_rows(zsl, gzsl)),
        f'The column "unseen only" uses the {zsl.images} images with a positive unseen class. On '
        f"all {format_count(all_images.images, 'image')}, the F1 at 3 is {f1}; the F1 at 3 of a "
        f"perfect ranking is {best_f1}.",
        "",
        format_terminal_table(SEEN_UNSEEN_COLUMNS, unseen_classes_metric_table_rows(results)),
    ]
    return ["\n".join(lines)]
