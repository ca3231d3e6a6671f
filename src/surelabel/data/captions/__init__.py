"""Caption formats with the interface ``format.read(path, *, images_root=None) -> Captions``."""

from surelabel.data.captions.resolution.caption_files import (
    CAPTION_FORMATS,
    detect_caption_format,
    has_captioned_images,
    read_captions,
)

__all__ = ["CAPTION_FORMATS", "detect_caption_format", "has_captioned_images", "read_captions"]
