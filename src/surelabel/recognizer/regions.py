"""What the regions of pictures say of some of their labels."""

from collections.abc import Mapping, Sequence

import numpy as np

from surelabel.errors import UnknownName
from surelabel.evaluation import Regions
from surelabel.recognizer.places import check_places, frozen, places
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Array, Images

AT_ONCE = 16  # pictures, whose maps of all labels are in memory


def check_regions(recognizer: Recognizer) -> None:
    """Refuse a recognizer that cannot say where, before any work is done.

    Raises:
        ConfigError: its method makes no maps, and its encoder no patch vectors.
    """
    check_places(recognizer.method, recognizer.backbone)


def regions_of(recognizer: Recognizer, wanted: Mapping[str, Sequence[str]]) -> dict[str, Regions]:
    """Which regions of each picture speak for some of its labels.

    Beside the maps of a method of its own stands what the frozen encoder sees before it.

    Args:
        recognizer: Any whose method makes maps, or whose encoder gives patches.
        wanted: Path → labels to show, names of the recognizer.

    Returns:
        The same of the pictures that could be read.

    Raises:
        UnknownName: a label is no name of the recognizer.
        ConfigError: the encoder gives no patch vectors in the joint space.
    """
    check_regions(recognizer)
    _check_names(recognizer.names, wanted)
    paths, found = list(wanted), dict[str, Regions]()
    for start in range(0, len(paths), AT_ONCE):
        some = paths[start : start + AT_ONCE]
        found |= _regions(recognizer, {path: wanted[path] for path in some})
    return found


def _check_names(names: Sequence[str], wanted: Mapping[str, Sequence[str]]) -> None:
    for path, labels in wanted.items():
        for label in labels:
            if label not in names:
                raise UnknownName(
                    f"Regions are shown of names of the recognizer. Got {label!r} for {path}; "
                    f"take one of its {len(names)}, such as {names[0]!r}, or ask with_names first."
                )


def _regions(recognizer: Recognizer, wanted: Mapping[str, Sequence[str]]) -> dict[str, Regions]:
    backbone, cache = recognizer.backbone, recognizer.cache
    found = places(Images(list(wanted)), recognizer.method, backbone, cache)
    names, column = np.array(recognizer.names), {n: c for c, n in enumerate(recognizer.names)}
    before = None
    if hasattr(recognizer.method, "maps"):
        before = frozen(found.paths, recognizer.spellings, backbone, cache)

    def of(row: int, maps: Array | None) -> dict[str, Array]:
        shown = [] if maps is None else [(name, column[name]) for name in wanted[found.paths[row]]]
        return {name: maps[row, c].copy() for name, c in shown if maps is not None}

    return {
        path: Regions(
            maps=of(row, found.maps),
            owners=names[found.maps[row].argmax(axis=0)],
            cover=backbone.cover,
            presence=None if found.presence is None else found.presence[row],
            before=of(row, before),
            after=of(row, found.after),
        )
        for row, path in enumerate(found.paths)
    }
