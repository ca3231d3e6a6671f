"""Draw the pictures inside the package again: `python training/collection.py`.

Needs the font of Debian's fonts-noto-color-emoji. A split is replaced only when it is whole.
"""

from surelabel.data.collections import COLLECTIONS, collection_folder
from surelabel.data.generate import write_scenes
from surelabel.files import new_folder


def main() -> None:
    for name, splits in COLLECTIONS.items():
        for split, wanted in splits.items():
            with new_folder(collection_folder(name, split=split)) as folder:
                write_scenes(folder, count=wanted.count, seed=wanted.seed, vocabulary=name)
            print(f"{name} {split}: {wanted.count} pictures")


if __name__ == "__main__":
    main()
