"""What somebody should know although the answer is right: one warning each."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from surelabel.backbones import Backbone
from surelabel.config import Run
from surelabel.encoding import Encoded
from surelabel.records import Flags, LabelledFeatures, LabelledImages

FEW_STEPS = 30  # of a head that begins with nothing
LARGER = "For photographs take a larger encoder, such as --model ViT-B-16/openai."


def note_untrained(backbone: Backbone, spellings: Sequence[str]) -> None:
    """Some names hold words that the encoder was never trained on."""
    strange = backbone.untrained(spellings)
    if strange:
        warnings.warn(
            f"{backbone.name} has never met {len(strange)} of {len(spellings)} names "
            f"({_first(strange)}): it knows {backbone.world}. Their scores mean little. {LARGER}",
            stacklevel=3,
        )


def note_foreign(backbone: Backbone, method: Any, pooled: Tensor) -> None:
    """The pictures look like nothing that the encoder was trained on.

    Nothing is said of pictures seen at another size, for nobody knows what is familiar there.
    """
    if not method.side and backbone.strangeness(pooled) > 1:
        warnings.warn(
            f"These {len(pooled)} pictures look like nothing that {backbone.name} was trained on: "
            f"it knows {backbone.world}. {LARGER}",
            stacklevel=3,
        )


def note_skipped(encoded: Encoded, what: str = "labelled pictures") -> None:
    """Some pictures cannot be read."""
    if encoded.skipped:
        total = len(encoded.skipped) + len(encoded.rows)
        shown = "; ".join(f"{s.path}: {s.reason}" for s in encoded.skipped[:3])
        more = "; …" if len(encoded.skipped) > 3 else ""
        warnings.warn(
            f"{len(encoded.skipped)} of {total} {what} cannot be read and are left out: "
            f"{shown}{more}",
            stacklevel=3,
        )


def note_unlooked(method: str, source: object) -> None:
    """Pictures came with labels, and the method learns without."""
    if isinstance(source, LabelledImages | LabelledFeatures) and len(source.names):
        warnings.warn(
            f"{method} learns from the pictures alone: the labels of these {len(source)} are not "
            "looked at. Calibrate with them afterwards, or take a method that learns from labels.",
            stacklevel=4,
        )


def note_few_steps(run: Run, pictures: int) -> None:
    """A student has too few pictures to learn much from."""
    steps = math.ceil(pictures / run.batch) * run.epochs
    if run.teacher and steps < FEW_STEPS:
        warnings.warn(
            f"{run.method.name} makes only {steps} steps of learning with {pictures} pictures, and "
            f"may know little after them: give more pictures, or more passes (epochs is "
            f"{run.epochs}), or take method.name={run.teacher.name}, its teacher.",
            stacklevel=4,
        )


def note_unheard(names: Sequence[str], known: Flags) -> None:
    """The labels say nothing about some of the names."""
    unheard = [name for name, column in zip(names, known.T, strict=True) if not column.any()]
    if unheard:
        warnings.warn(
            f"The labels say nothing about {len(unheard)} of {len(names)} names "
            f"({_first(unheard)}).",
            stacklevel=3,
        )


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
