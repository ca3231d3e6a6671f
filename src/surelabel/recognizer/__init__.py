"""The recognizer: fit, calibrate, predict, save, load; and what people do with it."""

from surelabel.recognizer.deciding import guarantee, operating_point
from surelabel.recognizer.indexing import Refreshed, index_pictures, indexed_names
from surelabel.recognizer.judging import evaluate, judged
from surelabel.recognizer.opening import open_recognizer
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.regions import check_regions, regions_of
from surelabel.recognizer.saving import check_free
from surelabel.recognizer.sources import Labelled, Source
from surelabel.recognizer.tagging import check_choice, tag, tags_of

__all__ = [
    "Labelled",
    "Recognizer",
    "Refreshed",
    "Source",
    "check_choice",
    "check_free",
    "check_regions",
    "evaluate",
    "guarantee",
    "index_pictures",
    "indexed_names",
    "judged",
    "open_recognizer",
    "operating_point",
    "regions_of",
    "tag",
    "tags_of",
]
