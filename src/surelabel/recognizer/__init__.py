"""The recognizer: fit, calibrate, predict, save, load; and tagging in one line."""

from surelabel.recognizer.recognizer import Recognizer, evaluate
from surelabel.recognizer.tagging import tag, tags_of

__all__ = ["Recognizer", "evaluate", "tag", "tags_of"]
