"""Select the method of ``surelabel fit``: options, comparison and table of results."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command, Terminal
from surelabel.cli.terminal_text import format_terminal_table

if TYPE_CHECKING:
    from surelabel.cli.input_options import TrainingData
    from surelabel.recognizer import MethodSelection, Recognizer
    from surelabel.records import LabelTree

DEFAULT_MINUTES, DEFAULT_MAX_PASSES = 5.0, 14


@dataclass(frozen=True)
class MethodSelectionOptions:
    """Options that limit the methods of a model selection.

    Attributes:
        minutes: Maximum expected time of a method in minutes, or None for the default.
        max_passes: Maximum number of encoder passes of an image, or None for the default.
    """

    minutes: float | None
    max_passes: int | None


def method_selection_options(function: Command) -> Command:
    """Add the options ``--minutes`` and ``--max-passes``, as the argument `selection_options`."""

    @click.option(
        "--minutes",
        type=click.FloatRange(0, min_open=True),
        metavar="MINUTES",
        help="Maximum expected time for the comparison of a method, in minutes. Slower methods are "
        f"not compared. The limit applies if no method is given. [{DEFAULT_MINUTES:g}]",
    )
    @click.option(
        "--max-passes",
        type=click.IntRange(1),
        metavar="N",
        help="Maximum number of encoder passes for an image. Methods with more passes are not "
        f"compared. The limit applies if no method is given. [{DEFAULT_MAX_PASSES}]",
    )
    @wraps(function)
    def command(
        *arguments: Any, minutes: float | None, max_passes: int | None, **options: Any
    ) -> None:
        function(
            *arguments, selection_options=MethodSelectionOptions(minutes, max_passes), **options
        )

    return command


def check_method_selection_options(
    method: str | None,
    options: MethodSelectionOptions,
    run_file: str | None,
    settings: Sequence[str],
) -> None:
    """Check that the options of a model selection are given only without a method.

    Args:
        method: Key of the method, or None.
        options: Options of the model selection.
        run_file: TOML file with the settings of the run, or None.
        settings: Settings that replace settings of the file.

    Raises:
        UsageError: If there are a method and options of a model selection.
        ConfigError: If there are settings of a method without its name.
    """
    from surelabel.recognizer.method_selection import check_no_method_settings

    if method is None:
        check_no_method_settings(run_file, settings)
    for name in ("minutes", "max_passes"):
        if method is not None and getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(
                f"{option} limits the methods that are compared; got the method {method}. Remove "
                f"{option}, or the method."
            )


def select_in_fit_command(
    terminal: Terminal,
    options: MethodSelectionOptions,
    run_file: str | None,
    settings: Sequence[str],
    *,
    training_data: "TrainingData",
    labels: Sequence[str],
    folds: int | None,
    label_tree: "LabelTree | None",
    checkpoint: str,
) -> "Recognizer":
    """Return the fitted recognizer of the method with the lowest cross-validated log loss.

    Args:
        terminal: Object that prints results, status lines and progress.
        options: Limits of the time and of the encoder passes.
        run_file: TOML file with the settings of the run, or None.
        settings: Settings that replace settings of the file.
        training_data: Training data; only images or vectors with labels are accepted.
        labels: Labels of the recognizer.
        folds: Number of folds, or None for the default.
        label_tree: Tree of the labels, or None.
        checkpoint: File from which the comparison and the fit resume.

    Raises:
        InputError: If the training data have no labels.
    """
    from surelabel.errors import InputError
    from surelabel.recognizer import select_method
    from surelabel.records import LabelledFeatures, LabelledImages

    if not isinstance(training_data, LabelledImages | LabelledFeatures):
        raise InputError(
            "The selection of a method requires an annotated DATASET; got data of type "
            f"{type(training_data).__name__}. Give annotated images, or add --method METHOD."
        )
    given = {"folds": folds, **vars(options)}
    limits: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with terminal.progress("Comparing methods") as progress:
        return select_method(
            training_data,
            names=labels,
            run_file=run_file,
            settings=settings,
            **limits,
            device=terminal.device,
            label_tree=label_tree,
            checkpoint=checkpoint,
            describe=terminal.print_status,
            progress=progress,
        )


def method_selection_text(selection: "MethodSelection | None") -> str:
    """Return the table and the description of a model selection, or an empty text for None."""
    if selection is None:
        return ""
    table = format_terminal_table(selection.header, selection.rows)
    return f"{table}\n{selection.description}\n"
