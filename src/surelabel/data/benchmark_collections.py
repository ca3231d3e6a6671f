"""Generate the image collections of the benchmarks on first use."""

from collections.abc import Callable
from pathlib import Path

from surelabel.data.bundled_collections import SplitSettings, collection_split_settings
from surelabel.data.scene_files import AnnotatedScenes, read_scenes
from surelabel.data.scene_writing import write_scenes

BENCHMARK_COLLECTIONS: dict[str, dict[str, SplitSettings]] = {
    "scenes-80": {
        "train": SplitSettings(20_000, 180),
        "validation": SplitSettings(5_000, 181),
        "test": SplitSettings(10_000, 182),
    },
}


def benchmark_collection_scenes(
    name: str,
    *,
    split: str,
    cache_folder: str | Path,
    count: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> AnnotatedScenes:
    """Return the scenes of one split of a benchmark collection.

    The first call generates the scenes in ``cache_folder``; later calls read them from this folder.

    Args:
        name: Name of the collection, one of ``BENCHMARK_COLLECTIONS``.
        split: Name of the split: ``train``, ``validation`` or ``test``.
        cache_folder: Folder of generated scenes, with one subfolder per collection, split and
            count.
        count: Number of images, starting with the first image of the split. If None, all images of
            the split are used.
        progress: Function that is called with the number of generated images.

    Raises:
        UnknownName: If the collection or the split does not exist.
        ConfigError: If ``count`` is below 1.
        DataError: If the folder contains other files, is damaged or cannot be written.
        MissingPart: If the colour-emoji font cannot be used.
    """
    split_settings = collection_split_settings(BENCHMARK_COLLECTIONS, name, split)
    count = split_settings.count if count is None else count
    folder = Path(cache_folder) / f"{name}-{split}-{count}"
    write_scenes(folder, count=count, seed=split_settings.seed, vocabulary=name, progress=progress)
    return read_scenes(folder)
