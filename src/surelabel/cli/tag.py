"""``surelabel tag``."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.goals import goal_options, one_goal, thresholds_for
from surelabel.cli.sources import (
    labels_option,
    learn_first,
    method_options,
    model_option,
    names_of,
    overrides,
)
from surelabel.cli.terminal import Terminal, output, with_terminal
from surelabel.cli.where import where_option, write_where

if TYPE_CHECKING:
    from surelabel.records import Array, Predictions, Skipped


@click.command()
@click.argument("pictures", nargs=-1, required=True)
@labels_option
@model_option
@method_options
@click.option("--template", metavar="TEXT", help='one, ensemble, or such as "a drawing of a {}".')
@click.option("--threshold", type=float, help="Only labels with this probability or more. [0.5]")
@goal_options
@click.option("--top-k", type=int, help="At most so many labels a picture.")
@click.option(
    "--out",
    callback=output,
    metavar="FILE.{parquet,csv,jsonl}",
    help="Write all labels of all pictures to a file; the suffix decides the format.",
)
@where_option
@click.option("--strict", is_flag=True, help="A picture that cannot be read is an error.")
@click.option("--workers", type=click.IntRange(0), help="Decoding processes.")
@with_terminal
def tag(
    terminal: Terminal,
    pictures: tuple[str, ...],
    names: str | None,
    model: str,
    method: str | None,
    settings: tuple[str, ...],
    template: str | None,
    threshold: float | None,
    top_k: int | None,
    out: str | None,
    where: str | None,
    strict: bool,
    workers: int | None,
    **goals: Any,
) -> None:
    """Say which labels are in each picture, and how sure.

    PICTURES are folders, picture files, .txt files with one path a line, or - for such lines on
    standard input. A goal such as --precision 0.9 decides what is shown and never changes a
    probability; it needs a recognizer that 20 or more pictures have calibrated. A run that was
    stopped goes on where it was: give the same command again.
    """
    from surelabel.data import find_pictures, write_predictions
    from surelabel.recognizer import check_regions, open_recognizer

    goal = one_goal(threshold, goals)
    check_wishes(threshold, top_k, out, goal is not None)
    paths, wanted = find_pictures(pictures), names_of(names)
    recognizer = open_recognizer(
        model,
        wanted,
        template=template,
        settings=overrides(settings, method__name=method),
        device=terminal.device,
    )
    if where:
        check_regions(recognizer)
    learn_first(terminal, recognizer, paths)
    shown = thresholds_for(terminal, recognizer, goal) if goal else threshold
    start = time.perf_counter()
    with terminal.progress("Tagging") as progress:
        predictions = recognizer.predict(paths, workers=workers, strict=strict, progress=progress)
    seconds = time.perf_counter() - start
    if out:
        write_predictions(predictions, out)
        terminal.say(f"Written: {out}")
    if terminal.as_json or not out:
        show_tags(terminal, predictions, shown, top_k)
    if where:
        write_where(terminal, recognizer, predictions, where, top_k)
    close(terminal, predictions, seconds)


def check_wishes(threshold: float | None, top_k: int | None, out: str | None, goal: bool) -> None:
    """Refuse, before any work is done, what cannot be shown or written."""
    from surelabel.data import check_suffix
    from surelabel.recognizer import check_choice

    if out:
        check_suffix(out)
        if threshold is not None or top_k is not None or goal:
            raise click.UsageError(
                "--out writes all labels, so it goes with neither --threshold nor --top-k, nor "
                "with a goal such as --precision."
            )
    check_choice(threshold=threshold, top_k=top_k)


def show_tags(
    terminal: Terminal,
    predictions: "Predictions",
    threshold: "float | Array | None",
    top_k: int | None,
) -> None:
    """One line a picture; without other wishes, what is likelier than not."""
    from surelabel.recognizer import tags_of

    if threshold is None and top_k is None:
        threshold, top_k = (0.5, None) if predictions.calibration else (None, 5)
    if threshold is None and not predictions.calibration:
        terminal.say(
            "Nothing calibrated these scores: only their order means something, so the first "
            f"{top_k} labels are shown. `surelabel calibrate` makes probabilities of them, with "
            "labelled pictures or, less surely, without (--unlabelled)."
        )
    tags = tags_of(predictions, threshold=threshold, top_k=top_k)
    pairs = list(zip(predictions.paths, tags, strict=True))
    terminal.show(
        [{"path": path, "tags": found} for path, found in pairs],
        "\n".join(f"{path}: {words(found)}" for path, found in pairs),
    )


def words(tags: list[dict[str, Any]]) -> str:
    """``lion 0.97, bear 0.62``; a dash where there is no label."""
    shown = (
        f"{t['label']} {t['score'] if t['probability'] is None else t['probability']:.2f}"
        for t in tags
    )
    return ", ".join(shown) or "-"


def close(terminal: Terminal, predictions: "Predictions", seconds: float) -> None:
    """How it went: how fast, where the time went, what was skipped."""
    count, work = len(predictions) + len(predictions.skipped), predictions.work
    if work:
        terminal.say(
            f"{count} pictures in {seconds:.1f} s, {count / seconds:.0f} a second: decoding "
            f"{work.decode_seconds:.1f} s, encoder {work.model_seconds:.1f} s; {work.cached} came "
            "from the cache."
        )
    tell_skipped(predictions.skipped)


def tell_skipped(skipped: Sequence["Skipped"]) -> None:
    """Name the pictures that could not be read; this is never left out."""
    if skipped:
        click.echo(f"Skipped {len(skipped)} that cannot be read:", err=True)
    for picture in skipped:
        click.echo(f"  {picture.path}: {picture.reason}", err=True)
