"""Load ``scores:FILE``: scores that another program computed, with or without labels."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.input_options import load_dataset_from_input_options
from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.cli.terminal import Command
from surelabel.counts import format_count
from surelabel.errors import DataError, InputError
from surelabel.label_aliases import list_labels
from surelabel.recognizer_folder_checks import score_kind_of_recognizer_folder

if TYPE_CHECKING:
    from surelabel.cli.terminal import Terminal
    from surelabel.recognizer import LabelledInput
    from surelabel.records import LabelledScores

PREFIX = "scores:"
KINDS = ("logits", "probabilities", "cosines")


def score_kind_option(function: Command) -> Command:
    """Add the option ``--as`` for the meaning of the scores of ``scores:FILE``."""
    return click.option(
        "--as",
        "score_kind",
        type=click.Choice(KINDS),
        help="Kind of the scores in scores:FILE. The kind is never inferred from the numbers, so "
        "this option is required, except for a model that was calibrated or fitted on scores.",
    )(function)


def score_labels_argument(function: Command) -> Command:
    """Add the optional argument ``LABELS``, the annotations of the images of ``scores:FILE``."""
    return click.argument(
        "score_labels",
        metavar="[LABELS]",
        required=False,
        callback=validate_terminal_input_paths,
    )(function)


def score_table_options(function: Command) -> Command:
    """Add the options ``--image-column`` and ``--ignore`` for the columns of ``scores:FILE``."""
    image_column = click.option(
        "--image-column",
        metavar="COLUMN",
        help="Column of the image names in scores:FILE. [path, image or filename]",
    )
    ignore = click.option(
        "--ignore",
        multiple=True,
        metavar="COLUMN",
        help="Column of scores:FILE without scores. The option may be repeated.",
    )
    return image_column(ignore(function))


def is_score_input(source: str | None) -> bool:
    """Return True if a source is ``scores:FILE``."""
    return bool(source) and str(source).startswith(PREFIX)


def load_dataset_or_scores(
    terminal: "Terminal",
    model: str,
    dataset: str,
    labels: str | None,
    kind: str | None,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "LabelledInput":
    """Load annotated images, vectors, or scores with labels if an argument is ``scores:FILE``.

    Args:
        terminal: Object that prints how tables of scores and of their labels were read.
        model: ``scores:FILE``, for which ``dataset`` contains the labels; or another model.
        dataset: Dataset, or ``scores:FILE``, whose annotations are ``labels``.
        labels: Annotations of the images of a dataset ``scores:FILE``, or None.
        kind: Value of the option ``--as``. If None, the kind of the saved recognizer is used.
        images_root: Root of image paths, or None.
        table_options: Options for the columns and cells of tables, as keyword arguments of
            ``read_labels``. Options for columns apply to the tables that have these columns.

    Raises:
        InputError: If the kind or the annotations are missing, or if scores are given twice.
        DataError: If a file cannot be read.
        UsageError: If ``labels`` or ``kind`` is given without ``scores:FILE``.
    """
    if is_score_input(model) and is_score_input(dataset):
        raise InputError(
            f"Only one argument can be scores:FILE; got {model} and {dataset}. Give {model} and "
            f"the labels of its images, or a saved recognizer and {dataset}."
        )
    file = model if is_score_input(model) else dataset
    if not is_score_input(file):
        check_no_score_options(kind, labels)
        if score_kind_of_recognizer_folder(model) is not None:
            raise InputError(
                f"{model} requires scores of images; got {dataset} without scores. Give "
                f"scores:FILE before the labels: scores:FILE {dataset}."
            )
        return load_dataset_from_input_options(dataset, images_root, table_options)
    if is_score_input(model):
        if labels is not None:
            raise click.UsageError(
                f"{model} requires one file with labels of its images; got {dataset} and {labels}. "
                "Remove one of these files."
            )
        labels = dataset
    if labels is None:
        raise InputError(
            f"{file} requires labels of its images; got none. After {file}, add a file of labels, "
            "such as truth.csv."
        )
    scores = read_score_input(file, model, kind, table_options)
    return join_score_labels(terminal, scores, file, labels, images_root, table_options)


def load_training_scores(
    terminal: "Terminal",
    sources: Sequence[str],
    kind: str | None,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "LabelledScores | None":
    """Return scores with labels for a fit, or None if the first source is not ``scores:FILE``.

    Args:
        terminal: Object that prints how tables of scores and of their labels were read.
        sources: ``scores:FILE`` and the annotations of its images; or other training data.
        kind: Value of the option ``--as``, or None.
        images_root: Root of image paths, or None.
        table_options: Options for the columns and cells of tables.

    Raises:
        InputError: If the kind or the annotations are missing.
        DataError: If a file cannot be read.
        UsageError: If the kind is given without ``scores:FILE``.
    """
    file, *labels = sources
    if not is_score_input(file):
        check_no_score_options(kind, None)
        return None
    if len(labels) != 1:
        raise InputError(
            f"{file} requires one file with labels of its images; got "
            f"{format_count(len(labels), 'file')}. Run `surelabel fit {file} LABELS --as KIND "
            "--out FOLDER`."
        )
    scores = read_score_input(file, file, kind, table_options)
    return join_score_labels(terminal, scores, file, labels[0], images_root, table_options)


def model_of_dataset(
    model: str, data: "LabelledInput", settings: Sequence[str]
) -> tuple[str, list[str], list[str]]:
    """Return the model, the default labels and the settings of the recognizer for a dataset.

    Args:
        model: Folder, name of an encoder, or ``scores:FILE``, which becomes ``scores:KIND``.
        data: Dataset of the command.
        settings: Settings of the run, as strings ``KEY=VALUE``.

    Raises:
        InputError: If the model is ``scores:FILE``, and no label is a column of the scores.
    """
    from surelabel.config import method_settings_of_run
    from surelabel.data import label_spellings_to_align
    from surelabel.records import LabelledScores

    if not is_score_input(model):
        return model, list(data.names), [*settings]
    assert isinstance(data, LabelledScores)  # as ``load_dataset_or_scores`` returns
    spellings = label_spellings_to_align(*data.columns)
    if not any(label_spellings_to_align(name) & spellings for name in data.names):
        raise InputError(
            "At least one label must be a column of the scores; got the labels "
            f"{list_labels(data.names[:5])} and the columns {list_labels(data.columns[:5])}. "
            "Rename the columns, or learn the labels from the scores (`surelabel fit`)."
        )
    has_method = bool(method_settings_of_run(overrides=settings))
    is_default = data.kind != "cosines" or has_method  # cosines have no log-odds yet
    domain = [] if is_default else ["method.domain=cosine"]
    encoder_settings = settings_of_score_encoder(data)
    return f"{PREFIX}{data.kind}", list(data.columns), [*encoder_settings, *domain, *settings]


def settings_of_score_encoder(data: object) -> list[str]:
    """Return settings of the encoder of scores as strings ``KEY=VALUE``; none for other data."""
    from surelabel.records import LabelledScores

    if not isinstance(data, LabelledScores):
        return []
    columns = json.dumps(list(data.columns), ensure_ascii=False)
    return [f"encoder.columns={columns}", f"encoder.views={data.views}"]


def check_no_score_options(kind: str | None, labels: str | None) -> None:
    """Check that options of scores are not given for other inputs.

    Raises:
        UsageError: If an option or argument is given.
    """
    if kind is not None:
        raise click.UsageError("--as applies only to scores:FILE. Remove --as.")
    if labels is not None:
        raise click.UsageError(extra_labels_message(labels))


def extra_labels_message(labels: str) -> str:
    """Return the message of a usage error for an argument LABELS without ``scores:FILE``.

    Args:
        labels: Value of the argument.
    """
    return f"LABELS can be given only after scores:FILE; got {labels}. Remove this argument."


def read_score_input(
    source: str, model: str, kind: str | None, table_options: Mapping[str, Any]
) -> "LabelledScores":
    """Return the scores of ``scores:FILE`` without labels.

    Args:
        source: ``scores:FILE``.
        model: Folder of a saved recognizer, whose kind of scores is used, or another model.
        kind: Value of the option ``--as``, or None.
        table_options: Options for the columns of tables; columns that the file lacks are ignored.

    Raises:
        InputError: If the kind is missing, or differs from the kind of the saved recognizer.
        DataError: If the file does not exist or cannot be read.
    """
    from surelabel.data import read_scores, score_table_columns

    path = source.removeprefix(PREFIX)
    if not Path(path).is_file():
        raise DataError(f"{source}: no such file {path!r}. Give the path of a file of scores.")
    columns = set(score_table_columns(path))
    image_column = table_options.get("image_column")
    return read_scores(
        path,
        kind=_score_kind(source, model, kind),
        image_column=image_column if image_column in columns else None,
        ignore=[name for name in table_options.get("ignore", ()) if name in columns],
    )


def join_score_labels(
    terminal: "Terminal",
    scores: "LabelledScores",
    source: str,
    labels: str,
    images_root: str | None,
    table_options: Mapping[str, Any],
) -> "LabelledScores":
    """Return scores with the labels of a file, joined by the names of the images.

    Args:
        terminal: Object that prints how both tables were read.
        scores: Scores of images.
        source: ``scores:FILE`` of the scores.
        labels: File or folder of annotations.
        images_root: Root of image paths in the annotations, or None.
        table_options: Options for the columns and cells of tables; columns that only the table of
            the scores has are ignored.

    Raises:
        DataError, InputError: If the annotations cannot be read, or if no image has scores and
            labels.
    """
    from surelabel.data import (
        describe_labels,
        join_scores_and_labels,
        read_label_entries,
        score_table_columns,
    )

    path = source.removeprefix(PREFIX)
    only_scores = set(score_table_columns(path)) - set(score_table_columns(labels))
    options = {
        name: [column for column in value if column not in only_scores]
        if name == "ignore"
        else value
        for name, value in table_options.items()
        if name != "image_column" or value not in only_scores
    }
    labelled = read_label_entries(labels, images_root=images_root, **options)
    joined = join_scores_and_labels(scores, labelled, source=path)
    views = f", {scores.views} views" if scores.views > 1 else ""
    terminal.print_status(
        f"{path}: {scores.kind} of {format_count(len(scores), 'image')}{views}; "
        f"{format_count(len(scores.columns), 'column')}: {list_labels(scores.columns[:8])}"
        f"{', …' if len(scores.columns) > 8 else ''}."
    )
    for line in (f"{labels}: {describe_labels(labelled)[0]}", describe_labels(labelled)[1]):
        terminal.print_status(line)
    terminal.print_status(f"Images with scores and labels: {len(joined):,}.")
    return joined


def with_image_paths(scores: "LabelledScores", source: str, root: str | None) -> "LabelledScores":
    """Return scores whose image names are joined to a root, or to the folder of the file.

    Args:
        scores: Scores of images.
        source: ``scores:FILE`` of the scores.
        root: Folder of the images. If None, the folder of the file is used.
    """
    folder = Path(root) if root else Path(source.removeprefix(PREFIX)).parent
    return scores.with_paths([str(folder / path) for path in scores.paths])


def _score_kind(source: str, model: str, kind: str | None) -> str:
    """Return the kind of the scores, as stated by the option or the saved recognizer.

    Raises:
        InputError: If the kind is missing, or differs from the kind of the saved recognizer.
    """
    if is_score_input(model):
        if kind is None:
            raise InputError(
                f"{source} requires --as; got none. Add --as logits (log-odds), --as probabilities "
                "(in [0, 1]) or --as cosines (cosine similarities)."
            )
        return kind
    saved = score_kind_of_recognizer_folder(model)
    if saved is None:
        raise InputError(
            f"{source} requires a model that was calibrated or fitted on scores; got {model}. Run "
            f"`surelabel calibrate {source} LABELS --as KIND --out FOLDER` and give FOLDER as the "
            "model."
        )
    if kind not in (None, saved):
        raise InputError(
            f"--as must be {saved}, the kind of the scores of {model}; got {kind}. Remove --as."
        )
    return saved


def read_unlabelled_scores(
    sources: Sequence[str], model: str, image_column: str | None, ignore: Sequence[str]
) -> "LabelledScores | None":
    """Return the scores of ``scores:FILE`` without labels, or None for other sources.

    Args:
        sources: Arguments of a command: one ``scores:FILE``, or images.
        model: Folder of a recognizer that was calibrated or fitted on scores.
        image_column: Value of the option ``--image-column``, or None.
        ignore: Values of the option ``--ignore``.

    Raises:
        InputError: If there are other sources besides the scores, or if the model is not a
            recognizer of scores.
        DataError: If the file cannot be read.
        UsageError: If a column is given, and the sources are not scores.
    """
    source = next((source for source in sources if is_score_input(source)), None)
    if source is None:
        if image_column is not None or ignore:
            raise click.UsageError(
                "--image-column and --ignore apply only to scores:FILE. Remove these options."
            )
        return None
    if len(sources) > 1:
        raise InputError(
            f"Scores must be given as one scores:FILE; got {len(sources)} arguments: "
            f"{' '.join(sources[:5])}. Run the command once for each file."
        )
    options = {"image_column": image_column, "ignore": list(ignore)}
    return read_score_input(source, model, None, options)
