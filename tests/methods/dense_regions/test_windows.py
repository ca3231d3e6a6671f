import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.methods.dense_regions.windows import select_windows


def by_hand(maps, count, window_size):
    """One image: maps as nested lists, name by row by column."""
    down, across = len(maps[0]), len(maps[0][0])
    left_over = {
        (j, y, x): maps[j][y][x]
        for j in range(len(maps))
        for y in range(down)
        for x in range(across)
    }
    found = []
    while left_over and len(found) < count:
        j, y, x = max(left_over, key=left_over.get)
        left = min(max((x + 0.5) / across - window_size / 2, 0), 1 - window_size)
        top = min(max((y + 0.5) / down - window_size / 2, 0), 1 - window_size)
        found.append((left, top, left + window_size, top + window_size))
        left_over = {
            (name, row, column): value
            for (name, row, column), value in left_over.items()
            if name != j
            and not (
                left <= (column + 0.5) / across <= left + window_size
                and top <= (row + 0.5) / down <= top + window_size
            )
        }
    return found


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 6),
    st.sampled_from([0.13, 0.37, 0.4, 1.0]),
    st.integers(0, 1000),
)
def test_equals_the_rule_one_place_at_a_time(names, down, across, count, window_size, seed):
    maps = torch.randn(2, names, down, across, generator=torch.Generator().manual_seed(seed))
    got = select_windows(maps, count=count, window_size=window_size)
    for i in range(2):
        expected = by_hand(maps[i].tolist(), count, window_size)
        assert len(got[i]) == len(expected)
        for window, wanted in zip(got[i], expected, strict=True):
            assert window == pytest.approx(wanted, abs=1e-4)


@given(st.integers(1, 9), st.integers(1, 9), st.floats(0.01, 1.0), st.integers(0, 1000))
def test_windows_lie_in_the_image_and_have_the_size_asked_for(down, across, window_size, seed):
    maps = torch.randn(1, 5, down, across, generator=torch.Generator().manual_seed(seed))
    for left, top, right, bottom in select_windows(maps, count=5, window_size=window_size)[0]:
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1
        assert right - left == pytest.approx(window_size, abs=2e-4)
        assert bottom - top == pytest.approx(window_size, abs=2e-4)


def test_each_window_is_for_another_name():
    maps = torch.tensor([[[[9.0, 0.0, 0.0, 8.0]], [[0.0, 0.0, 1.0, 0.0]]]])
    first, second = select_windows(maps, count=3, window_size=0.25)[0]
    assert (first[0], second[0]) == (0.0, 0.5)


def test_a_single_place_is_looked_at_once():
    assert (
        select_windows(torch.zeros(2, 7, 1, 1), count=5, window_size=0.4)
        == [[(0.3, 0.3, 0.7, 0.7)]] * 2
    )


def test_maps_that_say_nothing_anywhere_still_give_places_and_stay_as_they_are():
    maps = torch.zeros(1, 3, 4, 4)
    assert len(select_windows(maps, count=3, window_size=0.3)[0]) == 3
    assert not maps.any()


def test_a_window_of_the_whole_image_is_the_only_one():
    maps = torch.rand(1, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert select_windows(maps, count=5, window_size=1.0) == [[(0.0, 0.0, 1.0, 1.0)]]
