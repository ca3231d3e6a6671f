"""Define caption formats, each with ``read`` and ``read_pairs(path, *, images_root=None)``."""

from surelabel.data.captions.resolution.caption_files import (
    CAPTION_FORMATS,
    detect_caption_format,
    has_captioned_images,
    read_captions,
    read_pairs,
)

__all__ = [
    "CAPTION_FORMATS",
    "detect_caption_format",
    "has_captioned_images",
    "read_captions",
    "read_pairs",
]
