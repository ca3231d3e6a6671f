"""Recalibrate a recognizer on few annotated images for ``calibrate --recalibrate``."""

from typing import TYPE_CHECKING, Any

from surelabel.cli.terminal import Terminal
from surelabel.cli.terminal_text import format_terminal_table

if TYPE_CHECKING:
    from surelabel.evaluation import Recalibration
    from surelabel.metrics import ConfidenceInterval
    from surelabel.recognizer import Recognizer, RecognizerInput


def recalibrate_in_calibrate_command(
    terminal: Terminal,
    recognizer: "Recognizer",
    dataset: "RecognizerInput",
    out: str | None,
    not_saved: str,
) -> None:
    """Recalibrate a recognizer if this improves the log loss, save it, and print the result.

    The recognizer is saved with its unchanged calibration if there is no improvement.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Calibrated recognizer.
        dataset: Annotated images that were sampled at random.
        out: Folder for the recognizer. If None, the recognizer is not saved.
        not_saved: Sentence that is printed if the recognizer is not saved.
    """
    with terminal.progress("Encoding") as progress:
        result = recognizer.recalibrate(dataset, progress=progress)
    if out:
        recognizer.save(out)
    if out and not result.is_improvement:
        saved = f"Saved with the unchanged calibration in {out}."
    else:
        saved = f"Saved in {out}." if out else not_saved
    text = [
        format_recalibration_table(result),
        result.sentence,
        f"Scale of the log-odds {result.scale:.3f}, shift {result.shift:+.3f}."
        f"{'' if result.is_improvement else ' They are not applied.'}",
        f"Calibration: {recognizer.calibrated_on}.",
        saved,
    ]
    value: dict[str, Any] = result.as_dict() | {
        "calibration": recognizer.calibrated_on,
        "recognizer": out,
    }
    terminal.print_result(value, "\n".join(text))


def format_recalibration_table(result: "Recalibration") -> str:
    """Return a table of the log loss and the calibration error before and after."""
    rows = [
        ["log loss", f"{result.log_loss_before:.4f}", f"{result.log_loss_after:.4f}", "nats"],
        ["ECE", *(_format_ece(ece) for ece in (result.ece_before, result.ece_after)), "points"],
        [
            "noise floor of the ECE",
            f"{100 * result.noise_floor_before:.2f}",
            f"{100 * result.noise_floor_after:.2f}",
            "points",
        ],
    ]
    return format_terminal_table(["metric", "before", "after (cross-fitted)", "unit"], rows)


def _format_ece(ece: "ConfidenceInterval") -> str:
    return f"{100 * ece.value:.2f} ({100 * ece.low:.2f} to {100 * ece.high:.2f})"
