"""Render the images inside the package: `python training/bundled_collections.py`.

A split is replaced only when it is complete.
"""

from surelabel.data.bundled_collections import COLLECTIONS, bundled_collection_folder
from surelabel.data.scene_writing import write_scenes
from surelabel.files import atomic_folder


def main() -> None:
    """Render every split of every bundled collection."""
    for name, splits in COLLECTIONS.items():
        for split, settings in splits.items():
            with atomic_folder(bundled_collection_folder(name, split=split)) as folder:
                write_scenes(folder, count=settings.count, seed=settings.seed, vocabulary=name)
            print(f"{name} {split}: {settings.count} images")


if __name__ == "__main__":
    main()
