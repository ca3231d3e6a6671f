"""Define ``surelabel audit``, which finds annotated targets that are probably wrong."""

from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import (
    images_root_input_option,
    labels_input_option,
    load_dataset_from_input_options,
    max_image_memory_input_option,
    parse_labels_input_option,
    run_overrides_from_input_options,
    vector_encoder_of_input_options,
)
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.label_table_options import label_table_options, print_label_table_reading
from surelabel.cli.method_selection import (
    MethodSelectionOptions,
    check_method_selection_options,
    method_selection_options,
    method_selection_text,
)
from surelabel.cli.output_paths import validate_terminal_model_path, validate_terminal_output_folder
from surelabel.cli.score_inputs import (
    extra_labels_message,
    load_training_scores,
    model_of_dataset,
    score_kind_option,
    score_labels_argument,
)
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.recognizer import LabelAudit

MAX_LABELS = 10  # labels of the table on the terminal
MAX_ERRORS = 10  # suspected errors of each kind on the terminal
NOT_WRITTEN = (
    "No report was written. Add --out FOLDER to write an HTML page with the images, and the file "
    "corrections.csv."
)


@click.command()
@click.argument("dataset", callback=validate_terminal_input_paths)
@score_labels_argument
@score_kind_option
@click.option(
    "--out",
    callback=validate_terminal_output_folder,
    metavar="FOLDER",
    help="New folder for the report, which contains an HTML page with images and the file "
    "corrections.csv to fill in.",
)
@click.option(
    "--model",
    callback=validate_terminal_model_path,
    help="Encoder, or folder of a saved recognizer. The method of a saved recognizer is fitted "
    "again. [tiny-vit]",
)
@click.option(
    "--method",
    help="Method to fit. By default, the method with the lowest cross-validated log loss is "
    "selected.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the run, such as epochs=5.",
)
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="K",
    default=5,
    show_default=True,
    help="Number of cross-validation folds.",
)
@method_selection_options
@images_root_input_option
@label_table_options
@labels_input_option
@max_image_memory_input_option
@with_terminal_options
def audit(
    terminal: Terminal,
    dataset: str,
    score_labels: str | None,
    score_kind: str | None,
    out: str | None,
    model: str | None,
    method: str | None,
    settings: tuple[str, ...],
    folds: int,
    selection_options: MethodSelectionOptions,
    images_root: str | None,
    table_options: dict[str, Any],
    names: str | None,
) -> None:
    """Find annotated targets that are probably wrong.

    DATASET contains annotated images in a format of `surelabel fit`. Each image is scored by a
    method that was fitted on other images. A target is a suspected error if it is more likely wrong
    than correct. Missing positives and wrong positives are ranked separately.

    FOLDER contains index.html with the images, and corrections.csv. Fill the column corrected of
    corrections.csv with 1, 0 or unknown, and fit again: `surelabel fit DATASET --corrections
    FOLDER/corrections.csv`.

    For scores of another program, give scores:FILE as DATASET, the annotations of its images as
    LABELS, and --as.
    """
    sources = [dataset, *([score_labels] if score_labels else [])]
    scores = load_training_scores(terminal, sources, score_kind, images_root, table_options)
    if scores is None and score_labels is not None:
        raise click.UsageError(extra_labels_message(score_labels))
    data = scores or load_dataset_from_input_options(dataset, images_root, table_options)
    labels = parse_labels_input_option(names)
    terminal.print_import_status()

    from surelabel.recognizer import audit as audit_labels
    from surelabel.report import check_audit_folder, write_audit_report

    if out:
        check_audit_folder(out)
    encoder = vector_encoder_of_input_options(data) if model is None else model
    overrides = run_overrides_from_input_options(settings, seed=terminal.seed, method__name=method)
    if scores is not None:
        encoder, score_names, overrides = model_of_dataset(dataset, scores, overrides)
        labels = labels or [name for name in scores.names if name in score_names]
        overrides += [] if method else ["method.name=zero_shot"]
    else:
        check_method_selection_options(method, selection_options, None, overrides)
        print_label_table_reading(terminal, dataset, data)
    limits = {name: value for name, value in vars(selection_options).items() if value is not None}
    with terminal.progress("Auditing") as progress:
        result = audit_labels(
            data,
            names=labels,
            model=encoder,
            settings=overrides,
            folds=folds,
            **limits,
            device=terminal.device,
            describe=terminal.print_status,
            progress=progress,
        )
    if out:
        with terminal.progress("Thumbnails") as progress:
            page = write_audit_report(result, out, progress=progress)
        terminal.print_status(f"Report: {page}")
    text = audit_as_text(result)
    terminal.print_result(result.as_dict(), text if out else f"{text}\n{NOT_WRITTEN}")


def audit_as_text(result: "LabelAudit") -> str:
    """Return the numbers of suspected errors, the labels with most errors, and the first errors.

    Args:
        result: Result of the audit.
    """
    from surelabel.evaluation import ERROR_KINDS

    suspected = {kind: result.suspected(kind) for kind in ERROR_KINDS}
    counts = " and ".join(
        format_count(len(errors), f"suspected {kind}") for kind, errors in suspected.items()
    )
    lines = [
        method_selection_text(result.selection),
        f"{format_count(len(result.paths), result.noun)}, "
        f"{format_count(len(result.names), 'label')}: {counts}.\n"
        f"Probabilities: {result.description}.",
    ]
    rows = [
        [str(value) for value in row.values()]
        for row in result.label_rows()
        if row["missing positives"] or row["wrong positives"]
    ]
    if rows:
        header = ["label", "positives", "negatives", "missing positives", "wrong positives"]
        lines.append(format_terminal_table(header, rows[:MAX_LABELS]))
    for kind, errors in suspected.items():
        if errors:
            cells = [
                [error.path, error.label, f"{error.probability:.3f}"]
                for error in errors[:MAX_ERRORS]
            ]
            lines.append(format_terminal_table([kind, "label", "probability"], cells))
    return "\n".join(line for line in lines if line)
