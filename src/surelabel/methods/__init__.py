"""Methods: ``method(backbone, names, *, settings)``, then ``features -> scores (n, c)``."""

from surelabel.methods.clip_adapter import ClipAdapter
from surelabel.methods.linear import Linear
from surelabel.methods.protocol import Method, of_patches
from surelabel.methods.zero_shot import ZeroShot

__all__ = ["METHODS", "ClipAdapter", "Linear", "Method", "ZeroShot", "of_patches"]

METHODS = {"clip_adapter": ClipAdapter, "linear": Linear, "zero_shot": ZeroShot}
