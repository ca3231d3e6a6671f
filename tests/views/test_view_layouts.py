import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import InputError
from surelabel.views import Box, CropLayout, RegionLayout, TileLayout, tile_grid_boxes

SIDES = st.integers(1, 300)
SHARES = st.tuples(*[st.floats(0, 1) for _ in range(4)]).filter(
    lambda p: p[0] < p[2] and p[1] < p[3]
)


def parts(cut, size, content="0f"):
    return [(b.left, b.top, b.width, b.height, b.flipped) for b in cut.boxes(size, content)]


@given(SIDES, SIDES, SHARES, SHARES)
def test_every_box_of_every_cut_lies_inside_and_holds_something(width, height, one, other):
    for cut in (TileLayout(2, 4), CropLayout(count=3), RegionLayout([one, other])):
        boxes = cut.boxes((width, height), "0f")
        assert boxes
        for box in boxes:
            assert 0 <= box.left < box.left + box.width <= width
            assert 0 <= box.top < box.top + box.height <= height


@given(st.integers(100, 300), st.integers(100, 300), st.integers(0, 1000))
def test_no_side_of_a_box_is_finer_than_stated(width, height, seed):
    regions = RegionLayout([(0, 0.25, 0.5, 1), (0.2, 0.1, 0.9, 0.3)])
    for cut in (TileLayout(3, 4), CropLayout(count=20, seed=seed), regions):
        least = min(min(b.width, b.height) for b in cut.boxes((width, height), "0f"))
        assert least >= int(cut.min_side_share * min(width, height)) - 1


def test_tiles_are_the_tiles_and_a_tiny_image_has_as_many():
    assert TileLayout(2, 3).boxes((30, 20), "any") == tile_grid_boxes((30, 20), rows=2, columns=3)
    assert TileLayout().boxes((1, 1), "any") == [Box(0, 0, 1, 1)] * 9
    boxes = TileLayout().boxes((2, 5), "any")
    assert [(b.left, b.width) for b in boxes] == [(0, 1), (0, 1), (1, 1)] * 3
    assert [(b.top, b.height) for b in boxes[::3]] == [(0, 2), (2, 1), (3, 2)]


@given(st.integers(0, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_chunk_of_crops_goes_on_where_the_one_before_ended(first, count, more):
    together = CropLayout(count=count + more, first=first)
    chunks = [CropLayout(count=count, first=first), CropLayout(count=more, first=first + count)]
    assert parts(together, (90, 70)) == [part for c in chunks for part in parts(c, (90, 70))]


def test_crops_belong_to_the_content_and_the_seed():
    same = [parts(CropLayout(), (90, 70), content) for content in ("0f", "0f", "10")]
    assert same[0] == same[1] != same[2]
    assert parts(CropLayout(seed=1), (90, 70)) != same[0]
    assert parts(CropLayout(area=(0.3, 0.4)), (90, 70)) != same[0]


def test_crops_are_spread_over_the_image():
    boxes = CropLayout(count=400).boxes((1000, 800), "0f")
    areas = [b.width * b.height / 800_000 for b in boxes]
    assert np.mean(areas) == pytest.approx(0.15, abs=0.005)
    assert np.mean([b.left / (1000 - b.width) for b in boxes]) == pytest.approx(0.5, abs=0.05)
    assert np.mean([b.flipped for b in boxes]) == pytest.approx(0.5, abs=0.08)


def test_regions_are_shares_of_width_and_height():
    boxes = RegionLayout([(0.1, 0.5, 0.3, 1), (0.999, 0, 1, 0.001)]).boxes((100, 40), "any")
    assert boxes == [Box(10, 20, 20, 20), Box(99, 0, 1, 1)]


def test_cuts_that_look_elsewhere_have_other_names():
    cuts = [
        TileLayout(3, 2), TileLayout(2, 3), CropLayout(), CropLayout(count=6), CropLayout(first=1),
        CropLayout(seed=1),
        CropLayout(area=(0.1, 0.3)), RegionLayout([(0, 0, 1, 1)]), RegionLayout([(0, 0, 1, 0.5)]),
        RegionLayout([(0, 0, 1, 1), (0, 0, 1, 0.5)]),
    ]  # fmt: skip
    assert len({cut.name for cut in cuts}) == len(cuts)
    assert RegionLayout([(0, 0, 1, 1)]).name == RegionLayout(((0.0, 0.0, 1.0, 1.0),)).name
    assert CropLayout(area=[0.1, 0.2]) == CropLayout()


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda: TileLayout(0, 3),
            r"rows and columns must be 1 or more; got 0 and 3",
        ),
        (lambda: CropLayout(count=0), r"count must be 1 or more.* got count=0, first=0"),
        (lambda: CropLayout(first=-1), r"first 0 or more; got count=5, first=-1"),
        (lambda: CropLayout(area=(0.2, 0.1)), r"area must be two fractions in \(0, 1\]"),
        (
            lambda: CropLayout(area=0.2),
            r"area must be two fractions in \(0, 1\], the smaller.* got 0\.2",
        ),
        (lambda: CropLayout(area=[0.2]), r"area must be two fractions in \(0, 1\].* got \[0\.2\]"),
        (lambda: RegionLayout([]), "at least one region; got none.* use None"),
        (
            lambda: RegionLayout([(0, 0, 0, 1)]),
            r"right, bottom\) in \[0, 1\].* got \(0\.0, 0\.0, 0\.0, 1\.0",
        ),
        (
            lambda: RegionLayout([(0, 0, 1, 1.1)]),
            r"bottom\) in \[0, 1\], with left < right and top < bottom; got",
        ),
        (
            lambda: RegionLayout([(float("nan"), 0, 1, 1)]),
            r"bottom\) in \[0, 1\], with left < right",
        ),
    ],
)
def test_what_cannot_be_cut_is_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()
