import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.evaluation import RegionMaps
from surelabel.report import HeatMapLabel, render_heat_map_sheet
from surelabel.report.heat_map_sheet import describe_labels_of_heat_map_sheet
from surelabel.report.region_overlay import COLOURS


@pytest.fixture
def sheet(images):
    """The PNG of an image with some labels."""

    def made(labels, below=(), **more):
        maps = {name: np.random.default_rng(0).random((4, 4)) for name in labels}
        owners = np.array([*labels, *below] * 16)[:16].reshape(4, 4)
        shown = [HeatMapLabel(name, 0.9, 0.5, is_shown=True) for name in labels]
        others = [HeatMapLabel(name, 0.1, 0.5, is_shown=False) for name in below]
        regions = RegionMaps(maps, owners, **more)
        return render_heat_map_sheet(images(1)[0], regions, [*shown, *others])

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


def test_a_label_below_its_threshold_has_neither_a_colour_nor_a_map(images, share_of):
    path, owners = images(1)[0], np.array([["lion", "bear"], ["bear", "bear"]])
    regions = RegionMaps({name: np.eye(2) for name in ("lion", "bear")}, owners)
    lion = HeatMapLabel("lion", 0.9, 0.5, is_shown=True)
    bear = HeatMapLabel("bear", 0.1, 0.5, is_shown=False)
    first, second = COLOURS[:2]
    both = [lion, HeatMapLabel("bear", 0.6, 0.5, is_shown=True)]
    assert share_of(second, render_heat_map_sheet(path, regions, both)) > 2e-4
    assert share_of(first, render_heat_map_sheet(path, regions, [lion, bear])) > 2e-4
    assert share_of(second, render_heat_map_sheet(path, regions, [lion, bear])) < 2e-5
    assert share_of(first, render_heat_map_sheet(path, regions, [bear])) < 2e-5


def test_a_sheet_without_a_shown_label_has_the_image_only(sheet, pixels):
    none, one = pixels(sheet([], below=["bear"])), pixels(sheet(["lion"]))
    assert none.shape[0] < 0.7 * one.shape[0]
    with_maps = pixels(sheet([], below=["bear"], frozen_similarities={"bear": np.eye(2)}))
    assert np.array_equal(none, with_maps)


def test_the_probability_is_part_of_the_sheet(images, pixels):
    regions = RegionMaps({"lion": np.eye(2)}, np.full((2, 2), "lion"))
    labels = [[HeatMapLabel("lion", p, 0.5, is_shown=True)] for p in (0.97, 0.61)]
    path = images(1)[0]
    first, second = (pixels(render_heat_map_sheet(path, regions, label)) for label in labels)
    assert (first != second).any()
    assert labels[0][0].title == "lion 0.97"
    assert HeatMapLabel("a" * 30, 0.5, 0.5, is_shown=True).title == "a" * 14 + "… 0.50"


def test_the_note_has_the_labels_below_their_thresholds():
    lion = HeatMapLabel("lion", 0.9, 0.5, is_shown=True)
    bear = HeatMapLabel("bear", 0.12, 0.75, is_shown=False)
    text = describe_labels_of_heat_map_sheet([lion, bear])
    assert "is its probability. Labels below their threshold have no heat map: bear 0.12 " in text
    assert "(threshold 0.75)" in text
    assert "purple" in text
    assert "purple" not in describe_labels_of_heat_map_sheet([bear])
    scores = describe_labels_of_heat_map_sheet([HeatMapLabel("lion", 3.2, None, is_shown=True)])
    assert "uncalibrated score" in scores
    assert "threshold" not in scores


def test_a_image_that_is_gone_is_an_error():
    label = HeatMapLabel("a", 0.9, 0.5, is_shown=True)
    with pytest.raises(DataError, match=r"gone\.png"):
        render_heat_map_sheet(
            "gone.png", RegionMaps({"a": np.eye(2)}, np.full((2, 2), "a")), [label]
        )
