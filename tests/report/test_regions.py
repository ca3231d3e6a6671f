import re

import numpy as np
import pytest
from PIL import Image, ImageColor

from surelabel.evaluation import Regions
from surelabel.report.regions import COLOURS, FAINT, PLAIN, by_region, owner_map

GREY = Image.new("RGB", (80, 80), (128, 128, 128))


def regions(owners, labels, **more):
    owners = np.array(owners)
    return Regions({name: np.eye(*owners.shape) for name in labels}, owners, **more)


def pixels(picture):
    return np.asarray(picture).astype(int)


def covering(colour, share):
    """Grey under so much of a colour."""
    return (1 - share) * 128 + share * np.array(ImageColor.getrgb(colour))


def test_each_region_has_the_colour_of_its_label():
    seen = pixels(owner_map(GREY, regions([["a", "b"], ["b", "a"]], ["a", "b"])))
    for y, x, colour in [(5, 5, 0), (5, 75, 1), (75, 5, 1), (75, 75, 0)]:
        assert np.abs(seen[y, x] - covering(COLOURS[colour], PLAIN)).max() <= 1


def test_regions_of_labels_that_are_not_shown_stay_grey():
    seen = pixels(owner_map(GREY, regions([["a", "other"]], ["a"])))
    assert (seen[:, 60:] == 128).all()
    assert not (seen[:, :20] == 128).all()


def test_a_seventh_label_has_no_colour():
    seen = owner_map(GREY, regions([["7"]], list("1234567")))
    assert (pixels(seen) == 128).all()


def test_a_region_that_counts_less_than_the_average_is_fainter_and_no_other():
    presence = np.array([[0.0, 0.25, 0.75]])
    seen = pixels(owner_map(GREY, regions([["a", "a", "a"]], ["a"], presence=presence)))
    at = seen[40, [2, 40, 77]]
    assert np.abs(at[0] - covering(COLOURS[0], FAINT)).max() <= 1
    assert np.abs(at[1] - covering(COLOURS[0], FAINT + (PLAIN - FAINT) * 0.75)).max() <= 3
    assert np.abs(at[2] - covering(COLOURS[0], PLAIN)).max() <= 1


@pytest.mark.parametrize(("cover", "size"), [("middle", (40, 40)), ("padded", (80, 40))])
def test_the_coloured_part_is_the_part_that_the_encoder_saw(cover, size):
    picture = GREY.resize((80, 40))
    owners = [["a"] * 4] * 2 + [["b"] * 4] * 2
    seen = owner_map(picture, regions(owners, ["a", "b"], cover=cover))
    assert seen.size == size
    assert np.abs(pixels(seen)[0, 0] - covering(COLOURS[0], PLAIN)).max() <= 1
    assert np.abs(pixels(seen)[-1, -1] - covering(COLOURS[1], PLAIN)).max() <= 1


def shown(found):
    return by_region(GREY, "a.jpg", found, {"a": ("✓", " ")})


def test_a_card_shows_maps_before_after_presence_and_all_labels():
    maps = {name: np.eye(2) for name in "abcd"}
    owners = np.array([["a", "b"], ["c", "d"]])
    whole = Regions(maps, owners, presence=np.eye(2) / 2, before=maps, after=maps)
    text = shown(whole)
    assert text.count("<img") == 3 * 3 + 2
    assert re.findall("<h4>(Which|The strongest|Before|After)", text) == [
        "Which",
        "The strongest",
        "Before",
        "After",
    ]
    assert text.count('class="swatch"') == 4
    assert shown(Regions(maps, owners)).count("<img") == 3 + 1


def test_what_stands_on_a_card_is_escaped():
    nasty = '<b>"&'
    text = shown(regions([[nasty]], [nasty]))
    assert "<b>" not in text
    assert text.count("&lt;b&gt;") == 3  # in the words of the map, under it, and in the legend


def test_a_picture_of_one_region_and_one_label_has_a_map_too():
    whole = Regions({"a": np.ones((1, 1))}, np.array([["a"]]), presence=np.ones((1, 1)))
    seen = pixels(owner_map(GREY, whole))
    assert np.abs(seen - covering(COLOURS[0], PLAIN)).max() <= 1
    assert shown(whole).count("<img") == 3
