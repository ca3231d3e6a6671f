import pytest
import torch

from surelabel.encoders.towers.prompt_tokens import prompt_tokens_per_layer
from surelabel.errors import InputError


def test_each_layer_has_its_own_prompts():
    prompts = torch.arange(12.0).reshape(3, 2, 2)
    first, second, third = prompt_tokens_per_layer(prompts, depth=3, width=2)
    assert first.tolist() == [[0, 1], [2, 3]]
    assert second.tolist() == [[4, 5], [6, 7]]
    assert third.tolist() == [[8, 9], [10, 11]]
    assert prompt_tokens_per_layer(None, depth=2, width=5) == [None, None]
    assert [len(p) for p in prompt_tokens_per_layer(torch.zeros(2, 0, 5), depth=2, width=5)] == [
        0,
        0,
    ]


@pytest.mark.parametrize("shape", [(2, 4, 8), (3, 4, 7), (3, 8), (1, 3, 4, 8)])
def test_prompts_for_other_layers_or_of_another_width_are_refused(shape):
    with pytest.raises(InputError, match=r"prompts must have shape \(3, m, 8\), .* got"):
        prompt_tokens_per_layer(torch.zeros(shape), depth=3, width=8)
