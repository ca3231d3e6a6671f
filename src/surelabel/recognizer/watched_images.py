"""Compare scans of a folder with the images that were tagged: new, changed and missing images."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from surelabel.data.folder_scan import ScannedFolder
from surelabel.storage.stored_images import StoredImageStatus


@dataclass(frozen=True)
class ScanDifference:
    """Differences between a scan of a folder and the images that were tagged.

    Attributes:
        complete: Size and modification time of each new or changed image whose file is complete,
            by path.
        unseen: Paths of tagged images that the scan did not find.
        errors: Reason for each folder or file that could not be examined, by path. If there are
            errors, ``unseen`` can contain images that exist.
    """

    complete: dict[str, StoredImageStatus]
    unseen: list[str]
    errors: dict[str, str]


@dataclass
class WatchedImages:
    """Images of a folder that were tagged, each with the size and time of the tagged file.

    Images are grouped by folder, so that a path takes the memory of its file name only. ``len``
    returns the number of images.
    """

    _tagged: dict[str, dict[str, StoredImageStatus]] = field(default_factory=dict)
    _incomplete: dict[str, StoredImageStatus] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self._tagged.values()))

    def __contains__(self, path: str) -> bool:
        folder, name = os.path.split(path)
        return name in self._tagged.get(folder, {})

    def add(self, path: str, status: StoredImageStatus) -> None:
        """Record that an image was tagged, or that it cannot be read.

        Args:
            path: Absolute path of the image.
            status: Size and modification time of the file before it was read.
        """
        folder, name = os.path.split(path)
        self._tagged.setdefault(folder, {})[name] = status

    def discard(self, path: str) -> None:
        """Remove the record of an image; if a later scan finds the image, it counts as new."""
        folder, name = os.path.split(path)
        images = self._tagged.get(folder, {})
        images.pop(name, None)
        if not images:
            self._tagged.pop(folder, None)

    def compare(
        self, scan: Iterable[ScannedFolder], *, now_ns: int, min_age_ns: int
    ) -> ScanDifference:
        """Return the differences between a scan and the tagged images.

        A file is complete if its size and modification time are those of the previous scan, and its
        modification time is not within ``min_age_ns`` before ``now_ns``. A modification time after
        ``now_ns``, for example from another clock, does not make a file incomplete.

        Args:
            scan: Folders with their image files.
            now_ns: Current time in nanoseconds since 1970.
            min_age_ns: Minimum age of a complete file in nanoseconds.
        """
        complete, incomplete = {}, {}
        unseen, errors, scanned = list[str](), dict[str, str](), set[str]()
        for folder in scan:
            errors |= folder.errors
            scanned.add(folder.path)
            tagged = self._tagged.get(folder.path, {})
            unseen += [os.path.join(folder.path, n) for n in tagged if n not in folder.images]
            for name, status in folder.images.items():
                if tagged.get(name) == status:
                    continue
                path = os.path.join(folder.path, name)
                incomplete[path] = status
                is_recent = 0 <= now_ns - status.mtime_ns < min_age_ns
                if not is_recent and self._incomplete.get(path) == status:
                    complete[path] = status
        for missing_folder in self._tagged.keys() - scanned:
            unseen += [os.path.join(missing_folder, n) for n in self._tagged[missing_folder]]
        self._incomplete = incomplete
        return ScanDifference(complete, unseen, errors)
