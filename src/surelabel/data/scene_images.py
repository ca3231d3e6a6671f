"""Write the image files of generated scenes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from surelabel.errors import DataError
from surelabel.leftover_files import delete_path

JPEG_QUALITY = 85


def save_scene_images(pixels: Tensor, paths: Sequence[Path]) -> None:
    """Write images as JPEG files; if this fails, delete the files of these images.

    The files are not replaced atomically.

    Args:
        pixels: Images in [0, 1], ``(n, 3, h, w)``.
        paths: Paths in one folder, which is created if it does not exist, length n.

    Raises:
        DataError: If a file cannot be written.
    """
    rows = (pixels * 255).round().byte().permute(0, 2, 3, 1).numpy()
    try:
        paths[0].parent.mkdir(exist_ok=True)
        for row, path in zip(rows, paths, strict=True):
            Image.fromarray(row).save(path, quality=JPEG_QUALITY)
    except OSError as error:
        for path in paths:
            delete_path(path)
        raise DataError(
            f"Images cannot be written to {paths[0].parent}: {error.strerror or error}. Check the "
            "permissions and the free disk space."
        ) from error


@contextmanager
def single_rendering_thread() -> Iterator[None]:
    """Use one Torch thread in a ``with`` block.

    The rounding of sums depends on the number of threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
