"""Write the model card of a saved recognizer."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from torch import Tensor

from surelabel.config import Run
from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.methods import METHODS
from surelabel.recognizer.dtype_check import DtypeCheck
from surelabel.recognizer.method_selection_record import MethodSelection
from surelabel.recognizer.penalty_fitting import penalties_description
from surelabel.recognizer.quantization_record import quantization_record
from surelabel.recognizer.vector_normalization import vector_normalization_description
from surelabel.records import LabelTree


def recognizer_model_card(
    run: Run,
    names: Sequence[str],
    encoder: Encoder,
    calibration: str | None,
    weights: Mapping[str, Tensor],
    selection: MethodSelection | None = None,
    dtype_checks: Sequence[DtypeCheck] = (),
    label_tree: LabelTree | None = None,
) -> str:
    """Return the model card of a recognizer in Markdown.

    Args:
        run: Run with all settings.
        names: Labels; aliases are separated by ``|``.
        encoder: Encoder of the recognizer.
        calibration: Description of the calibration. If None, the recognizer is not calibrated.
        weights: Weights of the method.
        selection: Results of the model selection that selected the method. If None, the method was
            given.
        dtype_checks: Changes of the probabilities if images are encoded in bf16.
        label_tree: Tree of the labels, or None.
    """
    first_names = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    properties = recognizer_properties(run, encoder, calibration, weights, label_tree)
    if dtype_checks:
        properties["bf16"] = " ".join(check.description for check in dtype_checks)
    rows = "\n".join(f"| {name} | {value} |" for name, value in properties.items())
    return f"""# Recognizer of {format_count(len(names), "label")}

Labels: {first_names}

| | |
|---|---|
{rows}
| saved by | surelabel {version("surelabel")} |

Load the recognizer with `surelabel.Recognizer.load(folder)`, or give this folder as `--model`.
Probabilities are calibrated only for images that are similar to the calibration images. Before you
rely on the probabilities, run `surelabel evaluate` on your own annotated images.
{_model_selection_section(selection) if selection else ""}"""


def _describe_label_tree(label_tree: LabelTree) -> str:
    count = format_count(len(label_tree.parents), "label has a parent", "labels have parents")
    child, parent = next(iter(label_tree.parents.items()))
    return f"{count}, such as {parent} > {child}"


def _model_selection_section(selection: MethodSelection) -> str:
    """Return a section with the table of a model selection in Markdown."""
    table = [selection.header, ["---"] * len(selection.header), *selection.rows]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in table)
    return f"""
## Model selection

{selection.description}

{lines}
"""


def recognizer_properties(
    run: Run,
    encoder: Encoder,
    calibration: str | None,
    weights: Mapping[str, Tensor],
    label_tree: LabelTree | None,
) -> dict[str, str]:
    """Return the properties of a recognizer by name, as in its model card.

    Args:
        run: Run with all settings.
        encoder: Encoder of the recognizer.
        calibration: Description of the calibration. If None, the recognizer is not calibrated.
        weights: Weights of the method.
        label_tree: Tree of the labels, or None.
    """
    vectors = vector_normalization_description(encoder)
    record = quantization_record(encoder)
    penalties = penalties_description(run, weights)
    return {
        "encoder": encoder.name,
        **({"int8": record.description} if record else {}),
        "training images of the encoder": encoder.training_domain
        or "see the model card of the encoder",
        "license of the encoder": str(encoder.license),
        **({"vectors": vectors} if vectors else {}),
        "method": f"{run.method.name} {run.method.settings or ''}".rstrip(),
        "loss": _describe_fit_in_model_card(run),
        **({"regularization": penalties} if penalties else {}),
        "calibration": calibration or "none on held-out images",
        **({"label tree": _describe_label_tree(label_tree)} if label_tree else {}),
    }


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
