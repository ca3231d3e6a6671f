"""This package defines the table of embedded encoders and loads encoders by model name."""

from surelabel.encoders.embedded.embedded_encoders import ENCODERS, embedded_calibration
from surelabel.encoders.interface import Encoder
from surelabel.encoders.loading.model_names import load_encoder
from surelabel.encoders.open_clip.encoder import OpenClipEncoder
from surelabel.encoders.prompts.reference_list import reference_names
from surelabel.encoders.prompts.templates import TEMPLATES, prompt_templates

__all__ = [
    "ENCODERS",
    "TEMPLATES",
    "Encoder",
    "OpenClipEncoder",
    "embedded_calibration",
    "load_encoder",
    "prompt_templates",
    "reference_names",
]
