"""Methods: ``method(backbone, names, *, settings)``, then ``features -> scores (n, c)``."""

from surelabel.methods.clip_adapter import ClipAdapter
from surelabel.methods.finetune import FineTune
from surelabel.methods.linear import Linear
from surelabel.methods.protocol import Method, Recipe, of_patches
from surelabel.methods.zero_shot import ZeroShot

__all__ = [
    "METHODS",
    "ClipAdapter",
    "FineTune",
    "Linear",
    "Method",
    "Recipe",
    "ZeroShot",
    "of_patches",
]

METHODS = {
    "clip_adapter": ClipAdapter,
    "finetune": FineTune,
    "linear": Linear,
    "zero_shot": ZeroShot,
}
