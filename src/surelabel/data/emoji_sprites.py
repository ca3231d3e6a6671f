"""Render emoji sprites of the objects in generated scenes with a colour-bitmap font."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from surelabel.data.scene_words import Word
from surelabel.errors import MissingPart

SHIPPED_FONT = Path(__file__).with_name("fonts") / "NotoColorEmoji-scenes.ttf"
BITMAP_SIZE = 109  # pixels; the only size of the bitmaps in this font
NO_CHARACTER = "\U0010ffff"  # not a character: a font draws its glyph for missing characters
SIDES = (128, 64, 32)  # pixels; the levels of the pyramid


@dataclass(frozen=True)
class Sprites:
    """Sprites of c words as an image pyramid, that is, at several resolutions.

    Attributes:
        levels: RGBA images in [0, 1] for each side length in ``SIDES``, ``(c, 4, side, side)``; the
            colours are multiplied by alpha.
        coverage: Fraction of the square sprite that the emoji of each word covers, ``(c,)``.
    """

    levels: tuple[Tensor, ...]
    coverage: Tensor

    def nearest(self, pixels: float) -> int:
        """Return the index of the smallest level with a side of at least ``pixels``.

        If all levels are smaller, the index of the largest level is returned.
        """
        large_enough = [i for i, side in enumerate(SIDES) if side >= pixels]
        return max(large_enough, default=0)


def find_emoji_font(font: str | Path | None = None) -> Path:
    """Return the path of the colour-emoji font.

    Args:
        font: Path of a font file. If None, the font in the package is used.

    Raises:
        MissingPart: If there is no file at the path.
    """
    path = Path(font).expanduser() if font else SHIPPED_FONT
    if not path.is_file():
        raise MissingPart(
            f"--font must be the path of a colour-emoji font file; {path} is not a file. Remove "
            "--font to use the font of the package."
        )
    return path


def draw_sprites(words: Sequence[Word], font: str | Path | None = None) -> Sprites:
    """Render the emoji of each word and resize it to the levels of the image pyramid.

    Args:
        words: Words whose emoji characters are rendered, length c.
        font: Path of a colour-bitmap font. If None, the font in the package is used.

    Raises:
        MissingPart: If the font does not exist, has no colour bitmaps, or has no glyph for a
            character.
    """
    path = find_emoji_font(font)
    try:
        face = ImageFont.truetype(str(path), BITMAP_SIZE)
    except OSError as error:
        raise MissingPart(
            f"{path} must be a font with colour bitmaps of {BITMAP_SIZE} pixels; got: {error}. Use "
            "the bitmap version of NotoColorEmoji.ttf, or remove --font to use the font of the "
            "package."
        ) from error
    missing_glyph = _draw_emoji_glyph(NO_CHARACTER, face)
    largest = torch.stack([_draw_emoji_sprite(word, face, missing_glyph) for word in words])
    levels = [largest]
    for side in SIDES[1:]:
        levels.append(F.interpolate(largest, size=side, mode="area"))
    return Sprites(tuple(levels), largest[:, 3].mean(dim=(1, 2)))


def _draw_emoji_glyph(character: str, face: ImageFont.FreeTypeFont) -> Image.Image:
    canvas = Image.new("RGBA", (2 * BITMAP_SIZE, 2 * BITMAP_SIZE), (0, 0, 0, 0))
    ImageDraw.Draw(canvas).text((20, 20), character, font=face, embedded_color=True)
    return canvas


def _draw_emoji_sprite(
    word: Word, face: ImageFont.FreeTypeFont, missing_glyph: Image.Image
) -> Tensor:
    """Return the sprite of a word at the largest side, ``(4, side, side)``."""
    canvas = _draw_emoji_glyph(word.character, face)
    box = canvas.getbbox()
    if box is None or canvas == missing_glyph:
        raise MissingPart(
            f"The font must contain a glyph for {word.name!r} ({word.character}); the glyph is "
            "missing. Remove --font to use the font of the package, or give a newer "
            "NotoColorEmoji.ttf."
        )
    side = SIDES[0]
    glyph = canvas.crop(box)
    glyph.thumbnail((side, side), Image.Resampling.LANCZOS)
    square = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    square.paste(glyph, ((side - glyph.width) // 2, (side - glyph.height) // 2))
    pixels = torch.from_numpy(np.array(square)).permute(2, 0, 1).float() / 255
    return torch.cat([pixels[:3] * pixels[3:], pixels[3:]])
