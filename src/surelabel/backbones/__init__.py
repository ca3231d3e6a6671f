"""Backbones: ``loader(*, device) -> Backbone``. ``load_backbone`` finds others by their name."""

from surelabel.backbones.embedded import BACKBONES, shared_calibration
from surelabel.backbones.loading import load_backbone
from surelabel.backbones.protocol import Backbone
from surelabel.backbones.reference import reference_names
from surelabel.backbones.templates import TEMPLATES, prompt_templates
from surelabel.backbones.towers import Towers

__all__ = [
    "BACKBONES",
    "TEMPLATES",
    "Backbone",
    "Towers",
    "load_backbone",
    "prompt_templates",
    "reference_names",
    "shared_calibration",
]
