"""Windows in a graph are those of ``select_windows``."""

import pytest
import torch

from surelabel.export.graphs.window_pixel_features import WindowSelection, cut_windows
from surelabel.methods.dense_regions.windows import select_windows

SIDE, WINDOW = 240, 96


@pytest.mark.parametrize("count", [1, 5, 9])
def test_windows_are_at_the_positions_of_select_windows(count):
    maps = torch.randn(6, 3, 4, 8, generator=torch.Generator().manual_seed(0))
    expected = select_windows(maps, count=count, window_size=WINDOW / SIDE)
    selected = WindowSelection((4, 8), WINDOW / SIDE, SIDE, WINDOW)(maps.flatten(2), count)
    for image, windows in enumerate(expected):
        found = [
            (int(left[image]), int(top[image]))
            for top, left, is_window in selected
            if is_window[image]
        ]
        assert found == [(round(left * SIDE), round(top * SIDE)) for left, top, _, _ in windows]
    assert (len(expected[0]) < count) == (count > 3)  # at most one window for each label


def test_a_window_contains_the_pixels_from_its_top_left_corner():
    pixels = torch.arange(2 * 3 * 5 * 6).view(2, 3, 5, 6).float()
    windows = cut_windows(pixels, torch.tensor([1, 3]), torch.tensor([4, 0]), 2)
    assert windows.shape == (2, 3, 2, 2)
    assert torch.equal(windows[0], pixels[0, :, 1:3, 4:6])
    assert torch.equal(windows[1], pixels[1, :, 3:5, 0:2])
