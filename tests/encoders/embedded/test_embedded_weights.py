import math
from importlib.resources import files

import pytest
import torch
from safetensors.torch import load_file

from surelabel.encoders import ENCODERS
from surelabel.encoders.embedded.embedded_weights import expand_embedded_token_weights

WEIGHTS = files("surelabel.encoders").joinpath("weights")


@pytest.fixture(scope="module", params=sorted(ENCODERS))
def towers(request):
    return ENCODERS[request.param]()


def test_rows_of_trained_tokens_are_kept_and_all_others_are_their_mean(towers):
    stored = load_file(WEIGHTS / f"{towers.name}.safetensors")
    table = towers.model.token_embedding.weight
    ids, kept = stored["token_ids"].long(), stored["token_embedding.weight"].float()
    assert table.shape == (49408, kept.shape[1])
    assert torch.equal(table[ids], kept)
    others = torch.ones(49408, dtype=torch.bool)
    others[ids] = False
    torch.testing.assert_close(table[others][-1], kept.mean(dim=0))
    assert (table[others] == table[others][0]).all()


def test_a_table_with_all_rows_is_as_it_was():
    rows = torch.randn(4, 2)
    assert torch.equal(
        expand_embedded_token_weights(rows[[2, 0, 1, 3]], torch.tensor([2, 0, 1, 3]), 4), rows
    )


def test_noise_is_out_of_distribution_and_only_the_training_size_has_a_score(towers):
    noise = torch.randn(32, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    score = towers.ood_score(towers.encode_images(noise).pooled)
    assert score > 1
    assert math.isnan(towers.with_image_size(192).ood_score(torch.zeros(2, 128)))
