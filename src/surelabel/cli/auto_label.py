"""Define ``surelabel auto-label``, which accepts predicted targets with a bound on the errors."""

from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.guarantee_calibration import (
    guarantee_calibration_options,
    load_guarantee_calibration,
)
from surelabel.cli.input_options import (
    images_root_input_option,
    labels_input_option,
    load_unlabelled_from_input_options,
    max_image_memory_input_option,
    model_input_option,
    parse_labels_input_option,
)
from surelabel.cli.label_table_options import label_table_options, print_label_table_reading
from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.score_inputs import is_score_input, model_of_dataset, read_score_input
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.files import check_is_new_file

if TYPE_CHECKING:
    from surelabel.recognizer import AutoLabelCount, AutoLabels

MAX_LABELS = 20  # labels of the table on the terminal
NOT_WRITTEN = "No file was written. Add --out FILE.csv to write the accepted targets."


@click.command("auto-label")
@click.argument("images", nargs=-1, required=True)
@guarantee_calibration_options(
    required=True,
    default_max_wrong=0.05,
    help_text="Maximum expected share of wrong targets among the accepted targets. The bound "
    "applies to each label, separately for predicted positives and predicted negatives.",
)
@click.option(
    "--pooled",
    is_flag=True,
    help="Apply --max-wrong to all labels together. This bound needs many more calibration images.",
)
@click.option(
    "--out",
    callback=validate_terminal_output_path,
    metavar="FILE.csv",
    help="New file for the accepted targets. A person must decide the other targets, whose cells "
    "are empty.",
)
@model_input_option
@labels_input_option
@images_root_input_option
@label_table_options
@max_image_memory_input_option
@with_terminal_options
def auto_label(
    terminal: Terminal,
    images: tuple[str, ...],
    max_wrong: float,
    calibration: str,
    calibration_scores: str | None,
    pooled: bool,
    out: str | None,
    model: str,
    names: str | None,
    images_root: str | None,
    table_options: dict[str, Any],
) -> None:
    """Accept predicted targets, with a bound on their errors.

    IMAGES are all images to label: folders, image files or .txt files with one path per line. Give
    all images in one command. IMAGES can also be an .npz file of vectors, or scores:FILE for a
    recognizer of scores. DATASET contains annotated images that were sampled at random from the
    same collection. These images can be among IMAGES. For each label and each predicted target, the
    expected share of wrong targets among the accepted ones is at most --max-wrong. A person decides
    the other targets.

    For scores:FILE, DATASET contains the labels of some images of FILE, or of --calibration-scores.
    """
    if out:
        check_is_new_file(out)
    scores_file = next((source for source in images if is_score_input(source)), None)
    if scores_file is not None and len(images) > 1:
        raise InputError(
            f"Scores must be given as one scores:FILE; got {len(images)} arguments. Run the "
            "command once for each file."
        )
    labelled = load_guarantee_calibration(
        terminal, calibration, calibration_scores or scores_file, model, images_root, table_options
    )
    source = (
        load_unlabelled_from_input_options(images)
        if scores_file is None
        else read_score_input(scores_file, model, None, table_options)
    )
    labels = parse_labels_input_option(names)
    terminal.print_import_status()

    from surelabel.recognizer import auto_label as accept_predicted_targets
    from surelabel.recognizer import resolve_model

    model, default_names, overrides = model_of_dataset(model, labelled, [])
    recognizer = resolve_model(
        model, labels, default_names=default_names, settings=overrides, device=terminal.device
    )
    print_label_table_reading(terminal, calibration, labelled)
    with terminal.progress("Labelling") as progress:
        result = accept_predicted_targets(
            recognizer, labelled, source, max_wrong=max_wrong, pooled=pooled, progress=progress
        )
    if out:
        result.to_csv(out)
    text = auto_labels_as_text(result)
    written = f"Written to {out}." if out else NOT_WRITTEN
    terminal.print_result(result.as_dict(), f"{text}\n{written}")


def auto_labels_as_text(result: "AutoLabels") -> str:
    """Return a table of the accepted targets of each label, and the sentence that states the bound.

    Args:
        result: Result of the automatic labelling.
    """
    header = ["label", "predicted", f"{result.noun}s", "accepted", "share", "calibration", "wrong"]
    shown = [count for count in result.counts if count.images][: 2 * MAX_LABELS]
    lines = [format_terminal_table(header, [_auto_label_cells(count) for count in shown])]
    if n_hidden := sum(count.images > 0 for count in result.counts) - len(shown):
        lines.append(f"{format_count(n_hidden, 'more row')}; --json prints all.")
    n_accepted, n_targets = int(result.accepted.sum()), result.targets.size
    lines += [
        f"{n_accepted:,} of {format_count(n_targets, 'target')} are accepted, and a person must "
        f"decide {format_count(n_targets - n_accepted, 'other target')} "
        f"({format_count(len(result), result.noun)}, "
        f"{format_count(result.calibration_images, f'calibration {result.noun}')}).",
    ]
    if result.left_out:
        lines.append(
            f"{result.noun.capitalize()}s not labelled, because they are used for fitting or "
            f"calibration: {result.left_out:,}."
        )
    lines.append(result.guarantee)
    few = [count for count in result.counts if count.images and count.more_images_needed]
    if few:
        lines.append(
            f"No target is accepted in {format_count(len(few), 'row')} of the table, because there "
            f"are too few calibration {result.noun}s. For example, {few[0].label} "
            f"({_predicted(few[0])}) needs at least {few[0].more_images_needed:,} more "
            f"calibration {result.noun}s with this prediction."
        )
    return "\n".join(lines)


def _auto_label_cells(count: "AutoLabelCount") -> list[str]:
    numbers = (count.images, count.accepted)
    share = f"{100 * count.share:.0f} %"
    others = (count.calibration_images, count.wrong)
    return [count.label, _predicted(count), *map(str, numbers), share, *map(str, others)]


def _predicted(count: "AutoLabelCount") -> str:
    return "positive" if count.target else "negative"
