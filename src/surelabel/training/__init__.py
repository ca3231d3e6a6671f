"""The only training loop, the sources of its steps, and what it makes small."""

from surelabel.training.averaging import Average
from surelabel.training.batch import Batch, LearningSource, Source
from surelabel.training.checkpoint import Checkpoint
from surelabel.training.labelled import Labelled, taken, tensors
from surelabel.training.loop import Pass, fit
from surelabel.training.objective import Objective, of_elements
from surelabel.training.pictures import Pictures
from surelabel.training.tailoring import Canvases, Tailoring

__all__ = [
    "Average",
    "Batch",
    "Canvases",
    "Checkpoint",
    "Labelled",
    "LearningSource",
    "Objective",
    "Pass",
    "Pictures",
    "Source",
    "Tailoring",
    "fit",
    "of_elements",
    "taken",
    "tensors",
]
