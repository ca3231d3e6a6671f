"""Model card of a saved recognizer."""

from collections.abc import Sequence
from importlib.metadata import version

from surelabel.config import Run
from surelabel.encoders import Encoder
from surelabel.methods import METHODS


def recognizer_model_card(
    run: Run, names: Sequence[str], encoder: Encoder, calibration: str | None
) -> str:
    """Return the model card of a recognizer in Markdown.

    Args:
        run: Run with all settings.
        names: Labels; aliases are separated by ``|``.
        encoder: Encoder of the recognizer.
        calibration: Description of the calibration. If None, the recognizer is not calibrated.
    """
    first_names = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    return f"""# Recognizer of {len(names)} labels

Labels: {first_names}

| | |
|---|---|
| encoder | {encoder.name} |
| training images of the encoder | {encoder.training_domain or "see its model card"} |
| method | {run.method.name} {run.method.settings or ""} |
| loss | {_describe_fit_in_model_card(run)} |
| calibration | {calibration or "none on held-out images"} |
| saved by | surelabel {version("surelabel")} |

Load the recognizer with `surelabel.Recognizer.load(folder)`, or give this folder as `--model`.
Probabilities are calibrated only for images that are similar to the calibration images. Before you
rely on the probabilities, run `surelabel evaluate` on your own annotated images.
"""


def _describe_fit_in_model_card(run: Run) -> str:
    """Describe the loss and the targets that the method was fitted with."""
    method = METHODS[run.method.name]
    if method.learns_from == "nothing":
        return "none: not fitted"
    if method.learns_from == "labels":
        return run.loss.name
    if method.learns_from == "texts":
        return f"{run.loss.name}, on texts with labels"
    if method.learns_from == "pairs":
        return f"{run.loss.name}, on images with captions"
    if run.teacher is None or run.pseudolabels is None:
        return "none: fitted on images without labels"
    teacher = f"{run.teacher.name} {run.teacher.settings or ''}".rstrip()
    return f"{run.loss.name}, on pseudo-labels ({run.pseudolabels.name} of {teacher})"
