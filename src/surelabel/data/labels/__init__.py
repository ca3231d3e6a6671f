"""Labels from disk: ``format.read(path, *, settings) -> LabelledImages``, one file a format."""

from surelabel.data.labels.aligning import align
from surelabel.data.labels.reading import FORMATS, read_labels

__all__ = ["FORMATS", "align", "read_labels"]
