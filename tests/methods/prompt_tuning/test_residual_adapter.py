import pytest
import torch
import torch.nn.functional as F

from surelabel.errors import ConfigError
from surelabel.methods.prompt_tuning.residual_adapter import ResidualAdapter


def unit_vectors(*shape):
    return F.normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(0)), dim=-1)


@torch.no_grad()
def test_the_output_is_the_blend_by_hand():
    it, vectors = ResidualAdapter(6, ratio=0.3, reduction=2), unit_vectors(2, 4, 6)
    w1, w2 = it[0].weight, it[2].weight
    assert (w1.shape, w2.shape) == ((3, 6), (6, 3))
    for row, vector in enumerate(vectors.flatten(0, 1)):
        hidden = [max(0.0, float(w1[i] @ vector)) for i in range(3)]
        output = [max(0.0, sum(float(w2[j, i]) * hidden[i] for i in range(3))) for j in range(6)]
        blended = 0.3 * torch.tensor(output) + 0.7 * vector
        expected = blended / blended.square().sum().sqrt()
        torch.testing.assert_close(it(vectors).flatten(0, 1)[row], expected)


def test_a_ratio_of_0_leaves_the_vectors_unchanged():
    it, vectors = ResidualAdapter(6, ratio=0.0, reduction=10), unit_vectors(5, 6)
    assert it[0].weight.shape == (1, 6)
    torch.testing.assert_close(it(vectors), vectors)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ratio": 1.1, "reduction": 2}, r"ratio must be in \[0, 1\]; got 1.1"),
        ({"ratio": 0.5, "reduction": 0}, "reduction must be 1 or more; got 0"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        ResidualAdapter(6, **settings)
