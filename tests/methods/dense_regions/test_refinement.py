import math

import pytest
import torch

from surelabel.errors import InputError
from surelabel.methods.dense_regions.refinement import mask_refinement_box, refine_by_attention


def by_hand(scores, attention, down, across):
    """Log-odds of one image and one name, patch by patch, in double precision."""
    p = [1 / (1 + math.exp(-s)) for s in scores]
    first = [sum(a * q for a, q in zip(row, p, strict=True)) for row in attention]
    level = sum(first) / len(first)
    strong = [divmod(i, across) for i, value in enumerate(first) if value > level]
    tops, lefts = [y for y, _ in strong], [x for _, x in strong]
    inside = [
        min(tops) <= y <= max(tops) and min(lefts) <= x <= max(lefts)
        for y in range(down)
        for x in range(across)
    ]
    kept = [q * held for q, held in zip(p, inside, strict=True)]
    last = [sum(a * q for a, q in zip(row, kept, strict=True)) for row in attention]
    return [math.log(r / (1 - r)) for r in last]


def drawn(n, p, c, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(n, p, c, generator=generator)
    return scores, (2 * torch.randn(n, p, p, generator=generator)).softmax(dim=-1)


@pytest.mark.parametrize("grid", [(2, 3), (3, 2), (1, 6), (3, 4)])
def test_equals_the_formula_one_patch_and_name_at_a_time(grid):
    scores, attention = drawn(3, grid[0] * grid[1], 4)
    got = refine_by_attention(scores, attention, grid)
    for i in range(3):
        for j in range(4):
            expected = by_hand(scores[i, :, j].tolist(), attention[i].tolist(), *grid)
            torch.testing.assert_close(got[i, :, j], torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_a_patch_that_looks_at_itself_alone_keeps_its_score_where_its_name_is_strong():
    scores = torch.tensor([[[-2.0], [3.0], [-1.0]]])
    got = refine_by_attention(scores, torch.eye(3)[None], (1, 3))
    assert got[0, 1, 0].item() == pytest.approx(3.0, abs=1e-5)
    assert (got[0, [0, 2], 0] < -80).all()


def test_a_map_that_is_the_same_everywhere_stays_as_it_is():
    _, attention = drawn(1, 4, 1)
    got = refine_by_attention(torch.full((1, 4, 1), -0.7), attention, (2, 2))
    torch.testing.assert_close(got, torch.full((1, 4, 1), -0.7))


def test_a_single_patch_keeps_its_scores():
    scores = torch.tensor([[[1.5, -4.0, 0.0]]])
    torch.testing.assert_close(refine_by_attention(scores, torch.ones(1, 1, 1), (1, 1)), scores)


@pytest.mark.parametrize("size", [100.0, 1e4])
def test_extreme_scores_stay_finite_and_in_order(size):
    scores = torch.tensor([[[-size, size, -2 * size], [-1.1 * size, size, -2.1 * size]]])
    got = refine_by_attention(scores, torch.full((1, 2, 2), 0.5), (1, 2))
    assert got.isfinite().all()
    assert (got[0, :, 2] < got[0, :, 0]).all()
    assert (got[0, :, 0] < got[0, :, 1]).all()


def test_half_precision_is_worked_out_in_single():
    scores, attention = drawn(2, 6, 3)
    got = refine_by_attention(scores.half(), attention.half(), (2, 3))
    assert got.dtype == torch.float32
    torch.testing.assert_close(
        got, refine_by_attention(scores, attention, (2, 3)), rtol=0.02, atol=0.02
    )


def test_a_box_holds_all_that_is_strong_and_no_more():
    strong = torch.tensor([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]).float()
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[1:3, 1:3] = True
    assert torch.equal(mask_refinement_box(strong.view(1, 16, 1), (4, 4)).view(4, 4), expected)


def test_a_grid_that_does_not_hold_all_patches_is_refused():
    scores, attention = drawn(1, 6, 2)
    with pytest.raises(InputError, match=r"grid must contain 6 patches.*\(2, 2\)"):
        refine_by_attention(scores, attention, (2, 2))


def test_attention_of_another_grid_is_refused():
    scores, _ = drawn(1, 6, 2)
    with pytest.raises(InputError, match="attention must have axes"):
        refine_by_attention(scores, torch.ones(1, 4, 4), (2, 3))
