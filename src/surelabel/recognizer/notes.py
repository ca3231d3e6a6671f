"""What somebody should know although the answer is right: one warning each."""

import warnings
from collections.abc import Sequence

from torch import Tensor

from surelabel.backbones import Backbone
from surelabel.encoding import Encoded
from surelabel.records import Flags

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


def note_foreign(backbone: Backbone, pooled: Tensor) -> None:
    """The pictures look like nothing that the encoder was trained on."""
    if backbone.strangeness(pooled) > 1:
        warnings.warn(
            f"These {len(pooled)} pictures look like nothing that {backbone.name} was trained on: "
            f"it knows {backbone.world}. {LARGER}",
            stacklevel=3,
        )


def note_skipped(encoded: Encoded) -> None:
    """Some labelled pictures cannot be read."""
    if encoded.skipped:
        total = len(encoded.skipped) + len(encoded.rows)
        shown = "; ".join(f"{s.path}: {s.reason}" for s in encoded.skipped[:3])
        more = "; …" if len(encoded.skipped) > 3 else ""
        warnings.warn(
            f"{len(encoded.skipped)} of {total} labelled pictures cannot be read and are left "
            f"out: {shown}{more}",
            stacklevel=3,
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
