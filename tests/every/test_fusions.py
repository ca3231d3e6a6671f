"""What every fusion must do. A new line in FUSIONS is tested here with no more work."""

import math

import pytest
import torch

from surelabel.errors import InputError
from surelabel.views import FUSIONS, LABEL_COMPARING_FUSIONS

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
every = pytest.mark.parametrize("fusion", FUSIONS.values(), ids=FUSIONS.keys())


@pytest.fixture
def scores():
    """Eight images of five names, four views each."""
    generator = torch.Generator().manual_seed(0)
    draw = {"generator": generator, "dtype": torch.float64}
    return 3 * torch.randn(8, 5, **draw), 3 * torch.randn(8, 4, 5, **draw)


@every
def test_gives_one_row_an_image_and_changes_nothing(fusion, scores):
    before = [x.clone() for x in scores]
    fused = fusion(*scores)
    assert fused.shape == (8, 5)
    assert fused.dtype == torch.float64
    assert all(torch.equal(a, b) for a, b in zip(before, scores, strict=True))


@every
def test_images_are_independent(fusion, scores):
    image, views = scores
    torch.testing.assert_close(fusion(image[2:3], views[2:3]), fusion(image, views)[2:3])


@every
def test_permuting_the_names_permutes_the_columns(fusion, scores):
    image, views = scores
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(
        fusion(image[:, order], views[..., order]), fusion(image, views)[:, order]
    )


@pytest.mark.parametrize("name", FUSIONS)
def test_added_names_change_other_columns_only_if_the_fusion_is_declared_to_compare(name, scores):
    few = FUSIONS[name](*(values[..., :3] for values in scores))
    is_equal = torch.allclose(few, FUSIONS[name](*scores)[:, :3])
    assert is_equal != (name in LABEL_COMPARING_FUSIONS)


@every
def test_a_view_like_the_image_keeps_the_order_of_its_names(fusion, scores):
    image, _ = scores
    fused = fusion(image, image[:, None])
    assert torch.equal(fused.argsort(dim=1), image.argsort(dim=1))


@every
def test_seeing_a_view_again_changes_nothing(fusion, scores):
    image, views = scores
    twice = torch.cat([views, views[:, -1:]], dim=1)
    torch.testing.assert_close(fusion(image, twice), fusion(image, views))


@every
def test_a_name_that_a_view_sees_better_does_not_fall(fusion, scores):
    image, views = scores
    better = views.clone()
    better[:, :, 1] += 4
    assert (fusion(image, better)[:, 1] >= fusion(image, views)[:, 1]).all()


@every
def test_identical_images_get_identical_scores(fusion, scores):
    image, views = (x[:1].expand(3, *x.shape[1:]) for x in scores)
    fused = fusion(image, views)
    assert torch.equal(fused, fused[:1].expand(3, 5))


@every
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 40.0])
def test_scores_and_gradients_stay_finite(fusion, dtype, size, scores):
    image, views = ((size * x).to(dtype).requires_grad_() for x in scores)
    fused = fusion(image, views)
    fused.sum().backward()
    assert fused.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert fused.isfinite().all()
    assert image.grad.isfinite().all()
    assert views.grad.isfinite().all()


@every
def test_shapes_that_do_not_fit_are_shown(fusion):
    with pytest.raises(InputError, match=r"view_scores \(n t c\) has shape \(2, 4, 5\)"):
        fusion(torch.zeros(2, 3), torch.zeros(2, 4, 5))


@every
def test_no_view_is_refused(fusion):
    with pytest.raises(InputError, match="view_scores must contain one view or more"):
        fusion(torch.zeros(2, 3), torch.zeros(2, 0, 3))


@every
@pytest.mark.parametrize("where", [0, 1])
def test_scores_that_are_no_numbers_are_refused(fusion, where, scores):
    scores[where][0, 0] = math.nan
    with pytest.raises(InputError, match="scores must be finite"):
        fusion(*scores)
