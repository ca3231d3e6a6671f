"""Find the paths of XMP sidecars, and the images to which the sidecars belong.

A sidecar is the file ``IMG.xmp`` (naming ``stem``, as in Lightroom) or ``IMG.JPG.xmp`` (naming
``full``, as in darktable) beside the image ``IMG.JPG``.
"""

import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress

from surelabel.counts import format_count
from surelabel.data.images import IMAGE_SUFFIXES
from surelabel.data.xmp_packets import PHOTOSHOP, SURELABEL, XmpPacket, parse_xmp_packet
from surelabel.errors import DataError, InputError
from surelabel.file_readers import open_regular_file
from surelabel.storage.image_paths import is_object_url, split_container_path

SIDECAR_NAMINGS = ("stem", "full")
MAX_SIDECAR_BYTES = 64 * 2**20


def sidecar_path(image: str, naming: str) -> str:
    """Return the path of the sidecar of an image, which need not exist.

    If only a file with the suffix ``.XMP`` exists, its path is returned.

    Args:
        image: Path of the image.
        naming: ``stem`` for ``IMG.xmp`` or ``full`` for ``IMG.JPG.xmp``.

    Raises:
        InputError: If ``naming`` is unknown.
    """
    if naming not in SIDECAR_NAMINGS:
        raise InputError(
            f"The naming of sidecars must be one of {', '.join(SIDECAR_NAMINGS)}; got {naming!r}."
        )
    base = os.path.splitext(image)[0] if naming == "stem" else image
    path, other = f"{base}.xmp", f"{base}.XMP"
    return other if os.path.lexists(other) and not os.path.lexists(path) else path


def images_of_stem(images: Iterable[str]) -> dict[str, list[str]]:
    """Return the images that share their name without suffix with other images of their folder.

    Args:
        images: Paths of images.

    Returns:
        For each of these images, the sorted names of all image files in its folder with the same
        name without suffix. These files would share one sidecar with the naming ``stem``.
    """
    names_of: dict[str, dict[str, set[str]]] = {}
    images = list(images)
    for folder in {os.path.dirname(image) for image in images}:
        stems: dict[str, set[str]] = {}
        names_of[folder] = stems
        with suppress(OSError):  # the images in this folder cannot be read either
            for name in os.listdir(folder or "."):
                stem, suffix = os.path.splitext(name)
                if suffix.lower() in IMAGE_SUFFIXES:
                    stems.setdefault(stem, set()).add(name)
    shared = {}
    for image in images:
        folder, name = os.path.split(image)
        names = names_of[folder].get(os.path.splitext(name)[0], set()) | {name}
        if len(names) > 1:
            shared[image] = sorted(names)
    return shared


def check_sidecars(images: Sequence[str], naming: str) -> None:
    """Check before a prediction that no two images share a sidecar, which need not exist yet.

    Warn if images have only sidecars with the other naming.

    Args:
        images: Paths of the images.
        naming: ``stem`` or ``full``; see :func:`sidecar_path`.

    Raises:
        InputError: If ``naming`` is unknown.
        DataError: If several images would share a sidecar, such as a RAW and a JPEG image, or if an
            image is in an archive, a table or an object store.
    """
    for image in images:
        if is_object_url(image) or split_container_path(image) is not None:
            raise DataError(
                f"Sidecars require local image files; got {image}, which is in an archive, a table "
                "or an object store. Write a prediction file with --out instead."
            )
    paths = {image: sidecar_path(image, naming) for image in images}
    shared = images_of_stem(images)
    for image, names in shared.items() if naming == "stem" else ():
        if not _is_declared_image(paths[image], image):
            full_names = " and ".join(f"{name}.xmp" for name in names)
            remedy = f"Give --sidecar-name full, which uses {full_names}"
            raise shared_sidecar_error(paths[image], names, remedy)
    other = "full" if naming == "stem" else "stem"
    pairs = ((sidecar_path(i, other), path) for i, path in paths.items() if i not in shared)
    unused = [pair for pair in pairs if os.path.exists(pair[0]) and not os.path.exists(pair[1])]
    if unused:
        existing, path = map(os.path.basename, unused[0])
        warnings.warn(
            f"Sidecars with another name, such as {existing}, exist for {len(unused)} of "
            f"{format_count(len(images), 'image')}. Their keywords are ignored, and new sidecars, "
            f"such as {path}, are written. To change the existing sidecars, give --sidecar-name "
            f"{other}.",
            stacklevel=2,
        )


def shared_sidecar_error(path: str, names: Sequence[str], remedy: str) -> DataError:
    """Return the error for a sidecar that can belong to several images.

    Args:
        path: Path of the sidecar.
        names: Names of the images.
        remedy: Suggested action if the images remain in one folder, without a full stop.
    """
    return DataError(
        f"A sidecar must belong to one image; {path} can belong to {' or '.join(names)}. "
        f"{remedy}, or move all but one of these images to another folder."
    )


def read_sidecar(path: str) -> XmpPacket:
    """Return the packet of a sidecar.

    Raises:
        DataError: If the file cannot be read or is no XMP packet; see ``parse_xmp_packet``.
    """
    try:
        return parse_xmp_packet(read_sidecar_bytes(path))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} must be XMP in UTF-8; got {error}. Correct the file.") from error


def sidecar_belongs_to(packet: XmpPacket, image: str, *, is_declared: bool = False) -> bool:
    """Return whether the packet of a sidecar can belong to an image.

    Args:
        packet: Packet of a sidecar with the naming ``stem``.
        image: Path of the image.
        is_declared: If True, the packet must state the suffix of the image. If False, it must state
            no other suffix.
    """
    suffix = declared_suffix(packet)
    return suffix == _suffix(image) or not (suffix or is_declared)


def declared_suffix(packet: XmpPacket) -> str:
    """Return the suffix in ``photoshop:SidecarForExtension``, in lower case with a dot.

    If the packet does not state a suffix, the text is empty.
    """
    extension = packet.simple_value((PHOTOSHOP, "SidecarForExtension"))
    return f".{extension.lower()}" if extension else ""


def read_sidecar_bytes(path: str) -> bytes:
    """Return the bytes of a sidecar.

    Raises:
        DataError: If the file cannot be read, is not a regular file, or has more than 64 MiB.
    """
    with open_regular_file(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MAX_SIDECAR_BYTES:
            raise DataError(
                f"{path} must have at most {MAX_SIDECAR_BYTES} bytes; got {size} bytes. Check that "
                "the file is an XMP sidecar."
            )
        return stream.read(size)


def shared_sidecars(images: Iterable[str], naming: str) -> dict[str, list[str]]:
    """Return the images whose sidecar can belong to another image too, with the possible images.

    A sidecar that states the suffix of an image belongs to this image only.

    Args:
        images: Paths of the images.
        naming: ``stem`` or ``full``; see :func:`sidecar_path`. With ``full``, no image is returned.

    Returns:
        For each of these images, the sorted names of all image files with the same stem.
    """
    return {
        image: names
        for image, names in (images_of_stem(images) if naming == "stem" else {}).items()
        if not _is_declared_image(sidecar_path(image, naming), image)
    }


def is_sidecar_current(image: str, naming: str, model: str) -> bool:
    """Return whether a recognizer wrote the sidecar of an image after the image was changed.

    The modification times of both files are compared. A damaged sidecar is not current.

    Args:
        image: Path of the image.
        naming: ``stem`` or ``full``; see :func:`sidecar_path`.
        model: Fingerprint of the recognizer.
    """
    path = sidecar_path(image, naming)
    try:
        if os.stat(path).st_mtime_ns < os.stat(image).st_mtime_ns:
            return False
        return read_sidecar(path).simple_value((SURELABEL, "model")) == model
    except (OSError, DataError):
        return False


def _is_declared_image(path: str, image: str) -> bool:
    """Return whether a sidecar states that it belongs to the image with the suffix of ``image``."""
    return _declared_suffix_of_file(path) == _suffix(image)


def _declared_suffix_of_file(path: str) -> str:
    """Return the suffix of the image to which a sidecar states that it belongs, or no text."""
    if not os.path.exists(path):
        return ""
    try:
        return declared_suffix(read_sidecar(path))
    except DataError:
        return ""


def _suffix(image: str) -> str:
    return os.path.splitext(image)[1].lower()
