"""Change the tags in XMP sidecars of images atomically, without writing the images."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from surelabel.data.prediction_writing import shown_label_columns
from surelabel.data.xmp_keywords import (
    EMPTY_PACKET,
    LEVEL_SEPARATOR,
    XmpTags,
    add_xmp_tags,
    check_xmp_labels,
    remove_xmp_tags,
)
from surelabel.data.xmp_packets import XmpPacket, parse_xmp_packet
from surelabel.data.xmp_sidecar_paths import (
    declared_suffix,
    read_sidecar_bytes,
    sidecar_belongs_to,
    sidecar_path,
)
from surelabel.errors import DataError, InputError
from surelabel.files import FileVersion, atomic_file, file_version
from surelabel.records import LabelTree, Predictions, SkippedImage

MAX_ATTEMPTS = 3  # to change a sidecar that another program changes at the same time

SidecarEdit = Callable[[bytes | None], bytes | None]  # None is no file
SidecarState = FileVersion | None  # None is no file


@dataclass
class SidecarChanges:
    """Numbers of changed and unchanged sidecars, and the sidecars that were refused.

    Attributes:
        written: Number of sidecars that were written or deleted.
        unchanged: Number of images whose sidecar did not have to change.
        refused: Sidecars that are unchanged because they cannot be changed, each with the reason.
    """

    written: int = 0
    unchanged: int = 0
    refused: list[SkippedImage] = field(default_factory=list)

    def add(self, other: "SidecarChanges") -> None:
        """Add the numbers and the refused sidecars of other images."""
        self.written += other.written
        self.unchanged += other.unchanged
        self.refused += other.refused


class _SidecarRefusal(Exception):
    """Raised if a sidecar must not be changed; the message is the reason."""


class _ConcurrentChange(Exception):
    """Raised if another program changed a sidecar after it was read."""


def write_sidecar_tags(
    predictions: Predictions,
    naming: str,
    *,
    label_tree: LabelTree | None = None,
    refused: Mapping[str, str] | None = None,
) -> SidecarChanges:
    """Write the shown labels of each image to its sidecar, in place of earlier tags.

    Everything else in an existing sidecar remains, and the labels that are already keywords of the
    user are not added. No sidecar is created for an image without a shown label.

    Args:
        predictions: Predictions with the mask of the shown labels.
        naming: ``stem`` or ``full``; see :func:`sidecar_path`.
        label_tree: Tree of the labels, whose ancestors are the levels of hierarchical keywords. If
            None, all labels are at the top level.
        refused: Images whose sidecars must not be written, each with the reason, or None.

    Raises:
        InputError: If the predictions have no mask of the shown labels, a label cannot be a
            keyword, or ``naming`` is unknown.
        DataError: If a sidecar cannot be written, for example because the disk is full. An existing
            sidecar remains unchanged.
    """
    if predictions.shown is None:
        raise InputError(
            "Sidecars require predictions with shown labels; got predictions without shown labels. "
            "Set the field shown to the mask of the selected labels."
        )
    check_xmp_labels(predictions.names)
    are_probabilities = predictions.calibration is not None and predictions.logits is not None
    values = predictions.probabilities if are_probabilities else predictions.scores
    changes = SidecarChanges()
    for row, columns in enumerate(shown_label_columns(predictions)):
        image = predictions.paths[row]
        if refused and image in refused:
            changes.refused.append(SkippedImage(sidecar_path(image, naming), refused[image]))
            continue
        labels = [predictions.names[column] for column in columns]
        tags = XmpTags(
            labels,
            [_hierarchical_keyword(label, label_tree) for label in labels],
            values[row, columns].tolist(),
            are_probabilities,
            predictions.model,
        )
        owner = image if naming == "stem" else None
        _change_sidecar(changes, sidecar_path(image, naming), _tag_edit(tags, owner))
    return changes


def _hierarchical_keyword(label: str, label_tree: LabelTree | None) -> str:
    """Return the path of a label in the tree, such as ``animal|dog``."""
    return LEVEL_SEPARATOR.join(label_tree.path(label)) if label_tree else label


def remove_sidecar_tags(images: Iterable[str], naming: str) -> SidecarChanges:
    """Remove the tags that this package has added to the sidecars of images.

    A sidecar that contains nothing else is deleted.

    Args:
        images: Paths of the images.
        naming: ``stem`` or ``full``; see :func:`sidecar_path`.

    Raises:
        InputError: If ``naming`` is unknown.
        DataError: If a sidecar cannot be written. An existing sidecar remains unchanged.
    """
    changes = SidecarChanges()
    for image in images:
        _change_sidecar(changes, sidecar_path(image, naming), _removal_edit)
    return changes


def _tag_edit(tags: XmpTags, owner: str | None) -> SidecarEdit:
    """Return the edit that replaces the tags of a sidecar.

    If ``owner`` is given, the edit refuses a sidecar that belongs to another image.
    """

    def edit(data: bytes | None) -> bytes | None:
        if data is not None and owner is not None:
            _check_owner(parse_xmp_packet(data), owner)
        without_tags = _removal_edit(data)
        if not tags.labels:
            return without_tags
        return add_xmp_tags(EMPTY_PACKET if without_tags is None else without_tags, tags)

    return edit


def _removal_edit(data: bytes | None) -> bytes | None:
    """Return a packet without the tags of this package, or None if nothing else remains."""
    without_tags = None if data is None else remove_xmp_tags(data)
    return None if without_tags == EMPTY_PACKET else without_tags


def _change_sidecar(changes: SidecarChanges, path: str, edit: SidecarEdit) -> None:
    """Change a sidecar, and count the change.

    Raises:
        DataError: If the sidecar cannot be written.
    """
    try:
        if _is_sidecar_changed(path, edit):
            changes.written += 1
        else:
            changes.unchanged += 1
    except _SidecarRefusal as refusal:
        changes.refused.append(SkippedImage(path, str(refusal)))


def _is_sidecar_changed(path: str, edit: SidecarEdit) -> bool:
    """Change a sidecar, and return whether its bytes had to change.

    Raises:
        _SidecarRefusal: If the sidecar must not be changed.
        DataError: If the sidecar cannot be written.
    """
    for _ in range(MAX_ATTEMPTS):
        state = _file_state(path)
        try:
            data = None if state is None else read_sidecar_bytes(path)
            new_data = edit(data)
        except DataError as error:
            raise _SidecarRefusal(str(error).removeprefix(f"{path} ")) from error
        except ValueError as error:
            raise _SidecarRefusal(
                f"expected a writable XMP packet in UTF-8; got {error}"
            ) from error
        if new_data == data:
            return False
        _check_writable(path)
        try:
            _replace_sidecar(path, new_data, state)
        except _ConcurrentChange:
            continue
        except DataError as error:
            if getattr(error.__cause__, "errno", None) != errno.ENAMETOOLONG:
                raise
            raise _SidecarRefusal(os.strerror(errno.ENAMETOOLONG)) from error
        return True
    raise _SidecarRefusal(
        f"another program changed the file during each of the {MAX_ATTEMPTS} attempts; run the "
        "command again"
    )


def _replace_sidecar(path: str, data: bytes | None, state: SidecarState) -> None:
    """Replace or delete a sidecar, unless another program changed it.

    Raises:
        _ConcurrentChange: If the file is in another state than ``state``.
        DataError: If the file cannot be written.
    """
    mode = None if state is None else stat.S_IMODE(os.lstat(path).st_mode)
    if data is None:
        if _file_state(path) != state:
            raise _ConcurrentChange
        os.unlink(path)
        return
    with atomic_file(path, mode=mode) as temporary:
        temporary.write_bytes(data)
        if _file_state(path) != state:
            raise _ConcurrentChange


def _file_state(path: str) -> SidecarState:
    """Return the state of a regular file, or None if there is no file.

    Raises:
        _SidecarRefusal: If there is another kind of file, such as a symbolic link.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _SidecarRefusal(f"{error.strerror}") from error
    if stat.S_ISLNK(status.st_mode):
        raise _SidecarRefusal("expected a regular file; got a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise _SidecarRefusal("expected a regular file; got another kind of file")
    return file_version(status)


def _check_writable(path: str) -> None:
    """Check the permissions of a sidecar and its folder.

    Raises:
        _SidecarRefusal: If the file is read-only, or the folder cannot be written.
    """
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _SidecarRefusal(f"there is no write permission for the folder {folder}")
    if os.path.lexists(path):
        is_writable = os.lstat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
        if not is_writable or not os.access(path, os.W_OK):
            raise _SidecarRefusal("the file is read-only")


def _check_owner(packet: XmpPacket, image: str) -> None:
    """Check that a packet does not state that it belongs to another image.

    Raises:
        _SidecarRefusal: If the packet belongs to an image with another suffix.
    """
    if not sidecar_belongs_to(packet, image):
        raise _SidecarRefusal(
            "the sidecar states that it belongs to an image with the suffix "
            f"{declared_suffix(packet)}; give --sidecar-name full to write "
            f"{os.path.basename(image)}.xmp"
        )
