import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.evaluation import RegionMaps
from surelabel.report import render_heat_map_sheet
from surelabel.report.region_overlay import COLOURS


@pytest.fixture
def sheet(images):
    """The PNG of an image with some labels."""

    def made(labels, **more):
        maps = {name: np.random.default_rng(0).random((4, 4)) for name in labels}
        owners = np.array(list(labels) * 16)[:16].reshape(4, 4)
        return render_heat_map_sheet(images(1)[0], RegionMaps(maps, owners, **more))

    return made


def test_a_sheet_has_a_row_for_each_kind_of_map_and_room_for_six_labels(sheet, pixels):
    few, many = (
        pixels(sheet("ab")),
        pixels(sheet("abcdefgh", frozen_similarities={n: np.eye(2) for n in "abcdefgh"})),
    )
    assert many.shape[0] > 1.4 * few.shape[0]
    assert many.shape[1] > 1.6 * few.shape[1]


def test_each_label_has_its_colour_in_the_legend_and_no_other_has(sheet, share_of):
    png = sheet(["lion", "犬"])
    shares = [share_of(colour, png) for colour in COLOURS]
    assert min(shares[:2]) > 2e-4
    assert max(shares[2:]) < min(shares[:2])


def test_a_name_with_dollar_signs_is_no_formula(sheet, pixels):
    assert pixels(sheet(["a$\\frac$", "US$ and A$"])).shape == pixels(sheet(["a", "b"])).shape


def test_how_much_regions_count_is_shown_where_it_is_known(sheet, pixels):
    without, with_it = sheet("ab"), sheet("ab", region_weights=np.full((4, 4), 1 / 16))
    white = [(pixels(png) == 255).all(axis=2).mean() for png in (without, with_it)]
    assert white[1] < white[0] - 0.05


def test_a_image_that_is_gone_is_an_error():
    with pytest.raises(DataError, match=r"gone\.png"):
        render_heat_map_sheet("gone.png", RegionMaps({"a": np.eye(2)}, np.full((2, 2), "a")))
