import json
import math
from importlib.resources import files

import pytest
import torch
from safetensors.torch import load_file

from surelabel.backbones import BACKBONES, load_backbone, reference_names
from surelabel.backbones.embedded import expanded
from surelabel.data.words import all_words
from surelabel.errors import DataError

WEIGHTS = files("surelabel.backbones").joinpath("weights")


@pytest.fixture(scope="module", params=sorted(BACKBONES))
def towers(request):
    return BACKBONES[request.param]()


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
    assert torch.equal(expanded(rows[[2, 0, 1, 3]], torch.tensor([2, 0, 1, 3]), 4), rows)


def test_the_words_of_scenes_are_trained_and_rare_ones_are_named(towers):
    assert towers.untrained([word.name for word in all_words()]) == []
    assert towers.untrained(["hot dog", "zygote", "Dog", "dog zygote"]) == ["zygote", "dog zygote"]
    assert 0 < len(towers.untrained(reference_names())) < 130


def test_their_pictures_are_squashed_to_96_pixels(towers):
    assert towers.preprocess["resize_mode"] == "squash"
    assert towers.preprocess["size"] == [96, 96]
    assert towers.world == "emoji scenes (generated pictures of 299 things)"
    assert len(all_words()) == 299


def test_the_resnet_sees_eight_by_eight_places_at_256_pixels():
    large = BACKBONES["tiny-rn"]().dense()
    assert BACKBONES["tiny-vit"]().dense().preprocess["size"] == [96, 96]
    pixels = torch.randn(1, 3, 256, 256, generator=torch.Generator().manual_seed(0))
    assert large.patches(pixels).grid == (8, 8)
    assert large.self_aware(pixels).patches.shape == (1, 64, 128)


def test_noise_is_strange_and_strangeness_is_known_at_the_size_of_training_only(towers):
    noise = torch.randn(32, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    strangeness = towers.strangeness(towers.images(noise).pooled)
    assert strangeness > 1
    assert math.isnan(towers.at(192).strangeness(torch.zeros(2, 128)))


def test_a_saved_one_is_a_name_a_size_and_a_fingerprint(towers, tmp_path):
    towers.at(128 if towers.name == "tiny-rn" else 144).save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_backbone.json"
    again = load_backbone(f"local-dir:{file.parent}")
    assert again.name == towers.name
    about = json.loads(file.read_text())
    assert about["fingerprint"] == again.fingerprint != towers.fingerprint
    file.write_text(json.dumps({**about, "fingerprint": "0"}))
    with pytest.raises(DataError, match=f"made with weights 0 of {towers.name}, but this version"):
        load_backbone(f"local-dir:{file.parent}")
    file.write_text(json.dumps({**about, "embedded": "large-vit"}))
    with pytest.raises(DataError, match="must name one of tiny-rn, tiny-vit"):
        load_backbone(f"local-dir:{file.parent}")
