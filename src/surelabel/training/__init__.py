"""The only training loop, the sources of its steps, and what it makes small."""

from surelabel.training.batch import Batch, Source
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.labelled import Labelled, taken, tensors
from surelabel.training.loop import Pass, fit
from surelabel.training.objective import Objective, of_elements
from surelabel.training.pictures import Pictures

__all__ = [
    "Batch",
    "Checkpoint",
    "Labelled",
    "Objective",
    "Pass",
    "Pictures",
    "Source",
    "fit",
    "of_elements",
    "taken",
    "tensors",
]
