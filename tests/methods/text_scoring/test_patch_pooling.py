import pytest
import torch
import torch.nn.functional as F

from surelabel.errors import InputError
from surelabel.methods.text_scoring.patch_pooling import pool_neighbouring_patches


def drawn(n=2, grid=(4, 6), d=5):
    shape = (n, grid[0] * grid[1], d)
    return F.normalize(torch.randn(shape, generator=torch.Generator().manual_seed(0)), dim=-1)


def test_equals_the_sum_over_the_neighbours_that_there_are():
    patches, (down, across) = drawn(), (4, 6)
    got = pool_neighbouring_patches(
        patches, (down, across), window=0.6
    )  # 2.4 -> 3 down, 3.6 -> 3 across
    for row in range(down):
        for column in range(across):
            near = [
                patches[1, r * across + c]
                for r in range(max(row - 1, 0), min(row + 2, down))
                for c in range(max(column - 1, 0), min(column + 2, across))
            ]
            expected = F.normalize(sum(near), dim=0)
            torch.testing.assert_close(got[1, row * across + column], expected)


@pytest.mark.parametrize(
    ("cells", "wide"), [(3, 1), (6, 1), (8, 1), (12, 3), (16, 3), (21, 5), (28, 5)]
)
def test_a_fifth_of_the_image_is_the_nearest_odd_number_of_patches(cells, wide):
    patches = torch.zeros(1, cells, 2)
    patches[..., 0] = 1
    patches[0, cells // 2] = torch.tensor([0.0, 1.0])
    touched = pool_neighbouring_patches(patches, (1, cells), window=0.2)[0, :, 1] > 0
    assert int(touched.sum()) == wide


def test_without_a_window_each_patch_is_alone():
    patches = drawn()
    assert torch.equal(pool_neighbouring_patches(patches, (4, 6), window=0.0), patches)


def test_neighbours_that_cancel_out_are_no_direction():
    patches = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])
    patches[0, 1] = 0
    assert torch.equal(pool_neighbouring_patches(patches, (1, 3), window=1.0)[0, 1], torch.zeros(2))


def test_a_grid_of_other_size_is_refused():
    with pytest.raises(InputError, match=r"24 patches.*\(3, 6\)"):
        pool_neighbouring_patches(drawn(), (3, 6))
