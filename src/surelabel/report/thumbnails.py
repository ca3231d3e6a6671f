"""Create thumbnails of images, and data URIs of image files."""

import base64
from io import BytesIO

from PIL import Image

from surelabel.data.images import open_image
from surelabel.errors import DataError

SIDE = 192  # pixels of the longer side of a thumbnail
MAP_SIDE = 128  # pixels of the longer side of a thumbnail with a heat map
QUALITY = 80  # JPEG quality


def thumbnail_or_plot_data_uri(file: bytes, kind: str) -> str:
    """Return the content of an image file as a data URI.

    Args:
        file: Content of the file.
        kind: Image subtype of the MIME type, such as ``png``.
    """
    return f"data:image/{kind};base64,{base64.b64encode(file).decode()}"


def load_thumbnail(path: str, *, side: int = SIDE) -> Image.Image | None:
    """Return an upright thumbnail of an image, or None if the image cannot be read.

    Args:
        path: Path of the image.
        side: Maximum number of pixels of the longer side. Smaller images are not enlarged.
    """
    try:
        image = open_image(path, min_side=side)
    except DataError:
        return None
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image


def thumbnail_jpeg_data_uri(image: Image.Image) -> str:
    """Return an image as the data URI of a JPEG file."""
    file = BytesIO()
    image.save(file, "JPEG", quality=QUALITY, optimize=True)
    return thumbnail_or_plot_data_uri(file.getvalue(), "jpeg")
