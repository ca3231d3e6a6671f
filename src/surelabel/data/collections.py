"""Collections: labelled pictures inside the package, and larger sets that are drawn once.

`python training/collection.py` draws the pictures inside the package again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from surelabel.data.generate import ScenesTruth, read_scenes, write_scenes
from surelabel.errors import UnknownName
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class Split:
    """How many pictures a split has, and the seed they are drawn with."""

    count: int
    seed: int


COLLECTIONS: dict[str, dict[str, Split]] = {
    "scenes-80": {
        "train": Split(1500, 80),
        "validation": Split(500, 81),
        "test": Split(1000, 82),
    },
}
BENCHMARKS: dict[str, dict[str, Split]] = {
    "scenes-80": {
        "train": Split(20_000, 180),
        "validation": Split(5_000, 181),
        "test": Split(10_000, 182),
    },
}


def collection(name: str, *, split: str) -> LabelledImages:
    """Labelled pictures that come with the package; names in the order of the vocabulary.

    Args:
        name: One of ``COLLECTIONS``.
        split: ``train``, ``validation`` or ``test``.

    Raises:
        UnknownName: no such collection, or it has no such split.

    Example:
        >>> test = collection("scenes-80", split="test")
        >>> test.targets.shape
        (1000, 80)
    """
    return read_scenes(collection_folder(name, split=split)).images


def collection_folder(name: str, *, split: str) -> Path:
    """Where the pictures of a collection lie; ``read_scenes`` gives their boxes and captions.

    Raises:
        UnknownName: no such collection, or it has no such split.
    """
    _split(COLLECTIONS, name, split)
    return Path(__file__).with_name("collections") / name / split


def benchmark_scenes(
    name: str,
    *,
    split: str,
    cache_folder: str | Path,
    count: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> ScenesTruth:
    """Scenes for measuring, drawn on the first call and read from the cache afterwards.

    Args:
        name: One of ``BENCHMARKS``.
        split: ``train``, ``validation`` or ``test``.
        cache_folder: Each set has its own folder inside it.
        count: Only the first pictures; all that ``BENCHMARKS`` states when left out.
        progress: Called with the number of pictures done, while they are drawn.

    Raises:
        UnknownName: no such benchmark, or it has no such split.
        MissingPart: the set is to be drawn and no colour-emoji font is installed.
    """
    wanted = _split(BENCHMARKS, name, split)
    count = wanted.count if count is None else count
    folder = Path(cache_folder) / f"{name}-{split}-{count}"
    write_scenes(folder, count=count, seed=wanted.seed, vocabulary=name, progress=progress)
    return read_scenes(folder)


def _split(table: Mapping[str, Mapping[str, Split]], name: str, split: str) -> Split:
    if name not in table:
        raise UnknownName(f"{name!r} is no collection. Known: {', '.join(table)}.")
    if split not in table[name]:
        raise UnknownName(f"{name} has no split {split!r}. It has: {', '.join(table[name])}.")
    return table[name][split]
