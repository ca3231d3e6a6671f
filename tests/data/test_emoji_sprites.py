"""Sprites of the words of Scenes, drawn with the font in the package."""

from pathlib import Path

import matplotlib
import pytest
import torch
from fontTools.ttLib import TTFont

from surelabel.data import emoji_sprites
from surelabel.data.emoji_sprites import SIDES, draw_sprites, find_emoji_font
from surelabel.data.scene_words import all_scene_words
from surelabel.errors import MissingPart


@pytest.fixture(scope="module")
def sprites():
    return draw_sprites(all_scene_words())


def test_every_word_can_be_drawn(sprites):
    for level, side in zip(sprites.levels, SIDES, strict=True):
        assert level.shape == (len(all_scene_words()), 4, side, side)
    assert sprites.coverage.min() > 0.05
    assert sprites.coverage.max() < 1


def test_no_two_words_look_the_same(sprites):
    small = sprites.levels[-1].flatten(1)
    apart = torch.cdist(small, small) + 1e6 * torch.eye(len(small))
    assert apart.min() > 1


def test_a_sprite_stands_in_the_middle_of_its_square(sprites):
    filled = sprites.levels[0][:, 3] > 0
    for line in (filled.any(dim=1), filled.any(dim=2)):
        before = line.float().argmax(dim=1)
        after = line.flip(1).float().argmax(dim=1)
        assert (before - after).abs().max() <= 2


def test_colours_are_multiplied_by_alpha(sprites):
    for level in sprites.levels:
        assert (level[:, :3] <= level[:, 3:] + 1e-6).all()
        assert level.min() >= 0
        assert level.max() <= 1 + 1e-6


def test_each_level_keeps_the_mean_of_the_largest(sprites):
    for level in sprites.levels[1:]:
        assert torch.allclose(level.mean(dim=(2, 3)), sprites.levels[0].mean(dim=(2, 3)), atol=1e-5)


@pytest.mark.parametrize(
    ("pixels", "level"), [(1, 2), (32, 2), (32.1, 1), (64, 1), (65, 0), (128, 0), (500, 0)]
)
def test_the_smallest_level_with_enough_pixels_is_taken(sprites, pixels, level):
    assert sprites.nearest(pixels) == level


def test_a_missing_font_file_is_refused_with_its_path():
    with pytest.raises(MissingPart, match=r"/no/font.ttf is not a file"):
        find_emoji_font("/no/font.ttf")


def test_the_font_in_the_package_is_the_default_and_comes_with_its_licence():
    font = find_emoji_font()
    assert font.parent == Path(emoji_sprites.__file__).with_name("fonts")
    assert "SIL OPEN FONT LICENSE" in (font.parent / "OFL.txt").read_text(encoding="utf-8")


def test_the_font_in_the_package_has_the_characters_of_scenes_and_no_others():
    characters = TTFont(find_emoji_font())["cmap"].getBestCmap()
    assert {chr(code) for code in characters} == {word.character for word in all_scene_words()}


def test_a_file_that_is_no_font_is_refused(tmp_path):
    file = tmp_path / "letters.ttf"
    file.write_text("not a font")
    with pytest.raises(MissingPart, match=r"letters.ttf must be a font with colour bitmaps"):
        draw_sprites(all_scene_words()[:2], file)


def test_a_font_without_emoji_is_refused_and_draws_no_empty_boxes():
    letters = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    with pytest.raises(MissingPart, match="a glyph for 'lion'"):
        draw_sprites(all_scene_words()[:2], letters)
