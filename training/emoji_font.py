"""Write the subset of NotoColorEmoji.ttf that the package ships: only the characters of Scenes.

    python training/emoji_font.py NotoColorEmoji.ttf

The glyphs of the subset have the same pixels as those of the given font.
"""

import sys
from pathlib import Path

from fontTools import subset

from surelabel.data.emoji_sprites import SHIPPED_FONT
from surelabel.data.scene_words import all_scene_words


def write_subset(font: Path, out: Path) -> None:
    """Write a font with the characters of all words; it keeps its names and its license text."""
    options = subset.Options(layout_features=[], name_IDs=["*"], notdef_outline=True, hinting=False)
    loaded = subset.load_font(str(font), options)
    chooser = subset.Subsetter(options)
    chooser.populate(text="".join(word.character for word in all_scene_words()))
    chooser.subset(loaded)
    subset.save_font(loaded, str(out), options)


if __name__ == "__main__":
    write_subset(Path(sys.argv[1]), SHIPPED_FONT)
    print(f"{SHIPPED_FONT.name}: {SHIPPED_FONT.stat().st_size:,} bytes")
