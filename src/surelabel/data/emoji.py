"""Sprites: the pictures of words, drawn with an installed colour-emoji font."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from surelabel.data.words import Word
from surelabel.errors import MissingPart

FONT_PATHS = (
    "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf",
    "/usr/share/fonts/noto/NotoColorEmoji.ttf",
    "/usr/share/fonts/google-noto-emoji/NotoColorEmoji.ttf",
    "/usr/share/fonts/google-noto-color-emoji-fonts/NotoColorEmoji.ttf",
    "/usr/share/fonts/noto-color-emoji/NotoColorEmoji.ttf",
    "~/.local/share/fonts/NotoColorEmoji.ttf",
    "~/.fonts/NotoColorEmoji.ttf",
    "~/Library/Fonts/NotoColorEmoji.ttf",
)
BITMAP_SIZE = 109  # the only size that the bitmaps of this font have
NO_CHARACTER = "\U0010ffff"  # what a font draws for it, it draws for all that it lacks
SIDES = (128, 64, 32)  # the levels of the pyramid, in pixels


@dataclass(frozen=True)
class Sprites:
    """Drawn words as a pyramid.

    Attributes:
        levels: For each side of ``SIDES`` the pictures ``(c, 4, side, side)``, red, green and
            blue multiplied by alpha, in [0, 1].
        coverage: Share of its square that each word fills, ``(c,)``.
    """

    levels: tuple[Tensor, ...]
    coverage: Tensor

    def nearest(self, pixels: float) -> int:
        """The smallest level that still has ``pixels`` or more."""
        enough = [i for i, side in enumerate(SIDES) if side >= pixels]
        return max(enough, default=0)


def find_font(font: str | Path | None = None) -> Path:
    """The colour-emoji font: the one given, or the first on the usual paths.

    Raises:
        MissingPart: there is none; the message names the package to install.
    """
    candidates = [font] if font else FONT_PATHS
    for candidate in candidates:
        path = Path(candidate).expanduser()
        if path.is_file():
            return path
    where = f"at {font}" if font else "on the usual font paths"
    raise MissingPart(
        f"Drawing scenes needs the font NotoColorEmoji.ttf; there is none {where}. "
        "Install it (Debian and Ubuntu: apt-get install fonts-noto-color-emoji; "
        "Fedora: google-noto-color-emoji-fonts) or name the file with --font."
    )


def draw_sprites(words: Sequence[Word], font: str | Path | None = None) -> Sprites:
    """Draw every word once and shrink it to each level of the pyramid.

    Raises:
        MissingPart: there is no such font, or it lacks the picture of a word.
    """
    path = find_font(font)
    try:
        face = ImageFont.truetype(str(path), BITMAP_SIZE)
    except OSError as error:
        raise MissingPart(
            f"{path} cannot draw colour bitmaps of {BITMAP_SIZE} pixels ({error}). "
            "Use NotoColorEmoji.ttf in its bitmap form, as Debian packages it."
        ) from error
    missing = _glyph(NO_CHARACTER, face)
    largest = torch.stack([_draw(word, face, missing) for word in words])
    levels = [largest]
    for side in SIDES[1:]:
        levels.append(F.interpolate(largest, size=side, mode="area"))
    return Sprites(tuple(levels), largest[:, 3].mean(dim=(1, 2)))


def _glyph(character: str, face: ImageFont.FreeTypeFont) -> Image.Image:
    canvas = Image.new("RGBA", (2 * BITMAP_SIZE, 2 * BITMAP_SIZE), (0, 0, 0, 0))
    ImageDraw.Draw(canvas).text((20, 20), character, font=face, embedded_color=True)
    return canvas


def _draw(word: Word, face: ImageFont.FreeTypeFont, missing: Image.Image) -> Tensor:
    canvas = _glyph(word.character, face)
    box = canvas.getbbox()
    if box is None or canvas == missing:
        raise MissingPart(
            f"The font has no picture for {word.name!r} ({word.character}). "
            "Install a newer fonts-noto-color-emoji, or name its NotoColorEmoji.ttf with --font."
        )
    side = SIDES[0]
    drawn = canvas.crop(box)
    drawn.thumbnail((side, side), Image.Resampling.LANCZOS)
    square = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    square.paste(drawn, ((side - drawn.width) // 2, (side - drawn.height) // 2))
    pixels = torch.from_numpy(np.array(square)).permute(2, 0, 1).float() / 255
    return torch.cat([pixels[:3] * pixels[3:], pixels[3:]])
