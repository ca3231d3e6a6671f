import re

import numpy as np
import pytest
from PIL import Image, ImageColor

from surelabel.evaluation import RegionMaps
from surelabel.report.region_overlay import (
    COLOURS,
    MAX_OPACITY,
    MIN_OPACITY,
    draw_region_overlay_of_strongest_labels,
    render_region_overlay_maps,
)

GREY = Image.new("RGB", (80, 80), (128, 128, 128))


def regions(owners, labels, **more):
    owners = np.array(owners)
    return RegionMaps({name: np.eye(*owners.shape) for name in labels}, owners, **more)


def pixels(image):
    return np.asarray(image).astype(int)


def covering(colour, share):
    """Grey under so much of a colour."""
    return (1 - share) * 128 + share * np.array(ImageColor.getrgb(colour))


def test_each_region_has_the_colour_of_its_label():
    seen = pixels(
        draw_region_overlay_of_strongest_labels(GREY, regions([["a", "b"], ["b", "a"]], ["a", "b"]))
    )
    for y, x, colour in [(5, 5, 0), (5, 75, 1), (75, 5, 1), (75, 75, 0)]:
        assert np.abs(seen[y, x] - covering(COLOURS[colour], MAX_OPACITY)).max() <= 1


def test_regions_of_labels_that_are_not_shown_stay_grey():
    seen = pixels(draw_region_overlay_of_strongest_labels(GREY, regions([["a", "other"]], ["a"])))
    assert (seen[:, 60:] == 128).all()
    assert not (seen[:, :20] == 128).all()


def test_a_seventh_label_has_no_colour():
    seen = draw_region_overlay_of_strongest_labels(GREY, regions([["7"]], list("1234567")))
    assert (pixels(seen) == 128).all()


def test_a_region_that_counts_less_than_the_average_is_fainter_and_no_other():
    presence = np.array([[0.0, 0.25, 0.75]])
    seen = pixels(
        draw_region_overlay_of_strongest_labels(
            GREY, regions([["a", "a", "a"]], ["a"], region_weights=presence)
        )
    )
    at = seen[40, [2, 40, 77]]
    assert np.abs(at[0] - covering(COLOURS[0], MIN_OPACITY)).max() <= 1
    assert (
        np.abs(at[1] - covering(COLOURS[0], MIN_OPACITY + (MAX_OPACITY - MIN_OPACITY) * 0.75)).max()
        <= 3
    )
    assert np.abs(at[2] - covering(COLOURS[0], MAX_OPACITY)).max() <= 1


@pytest.mark.parametrize(("crop_mode", "size"), [("center", (40, 40)), ("border", (80, 40))])
def test_the_coloured_part_is_the_part_that_the_encoder_processed(crop_mode, size):
    image = GREY.resize((80, 40))
    owners = [["a"] * 4] * 2 + [["b"] * 4] * 2
    seen = draw_region_overlay_of_strongest_labels(
        image, regions(owners, ["a", "b"], crop_mode=crop_mode)
    )
    assert seen.size == size
    assert np.abs(pixels(seen)[0, 0] - covering(COLOURS[0], MAX_OPACITY)).max() <= 1
    assert np.abs(pixels(seen)[-1, -1] - covering(COLOURS[1], MAX_OPACITY)).max() <= 1


def shown(found):
    return render_region_overlay_maps(GREY, found, {"a": ("✓", " ")})


def test_a_card_shows_maps_before_after_presence_and_all_labels():
    maps = {name: np.eye(2) for name in "abcd"}
    owners = np.array([["a", "b"], ["c", "d"]])
    whole = RegionMaps(
        maps,
        owners,
        region_weights=np.eye(2) / 2,
        frozen_similarities=maps,
        adapted_similarities=maps,
    )
    text = shown(whole)
    assert text.count("<img") == 3 * 3 + 2
    assert re.findall("<h4>(Heat map|Strongest|Similarity in|Similarity after)", text) == [
        "Heat map",
        "Strongest",
        "Similarity in",
        "Similarity after",
    ]
    assert text.count('class="swatch"') == 4
    assert shown(RegionMaps(maps, owners)).count("<img") == 3 + 1


def test_what_stands_on_a_card_is_escaped():
    nasty = '<b>"&'
    text = shown(regions([[nasty]], [nasty]))
    assert "<b>" not in text
    assert text.count("&lt;b&gt;") == 4  # in the words of both maps, under one, and in the legend


def test_the_words_of_all_labels_say_how_many_regions_each_label_has():
    text = shown(regions([["a", "b", "a", "c"]], ["a", "b", "d"]))
    assert 'alt="Strongest label of each region: a in 2 of 4 regions, b in 1 of 4 regions"' in text
    assert "none of the listed labels" in shown(regions([["c"]], ["a"]))


def test_a_image_of_one_region_and_one_label_has_a_map_too():
    whole = RegionMaps({"a": np.ones((1, 1))}, np.array([["a"]]), region_weights=np.ones((1, 1)))
    seen = pixels(draw_region_overlay_of_strongest_labels(GREY, whole))
    assert np.abs(seen - covering(COLOURS[0], MAX_OPACITY)).max() <= 1
    assert shown(whole).count("<img") == 3
