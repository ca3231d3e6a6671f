"""Caption formats with the interface ``format.read(path, *, images_root=None) -> Captions``."""

from surelabel.data.captions.resolution.caption_files import CAPTION_FORMATS, read_captions

__all__ = ["CAPTION_FORMATS", "read_captions"]
