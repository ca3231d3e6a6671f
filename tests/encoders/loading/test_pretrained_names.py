"""Encoder families by their names in open_clip: from a local hub, and then without a network.

The architectures of these names are replaced by small ones; the hub has their random weights.
"""

import sys
from pathlib import Path

import open_clip
import pytest
import torch
from huggingface_hub import constants
from open_clip import factory
from open_clip.pretrained import get_pretrained_cfg
from safetensors.torch import load_file

from surelabel.encoders import load_encoder

sys.path.append(str(Path(__file__).parents[1]))

from family_encoders import FAMILIES, clip_tokenizer, small_encoder, small_model_cfg

NAMES = {
    "SigLIP": "ViT-B-16-SigLIP/webli",
    "SigLIP 2": "ViT-B-16-SigLIP2/webli",
    "PE-Core, B to bigG": "PE-Core-B-16/meta",
    "MobileCLIP2, S": "MobileCLIP2-S0/dfndr2b",
    "EVA02": "EVA02-B-16/merged2b_s8b_b131k",
    "ConvNeXt": "convnext_base/laion400m_s13b_b51k",
    "ViTamin": "ViTamin-B/datacomp1b",
    "CoCa": "coca_ViT-B-32/laion2b_s13b_b90k",
    "MetaCLIP 2, ViT-H and larger": "ViT-H-14-worldwide/metaclip2_worldwide",
}
TEXT_FILES = ("tokenizer.json", "tokenizer_config.json")
WEIGHTS = "open_clip_model.safetensors"


@pytest.fixture(autouse=True)
def _one_tokenizer_of_clip(monkeypatch):
    monkeypatch.setattr("surelabel.encoders.open_clip.checkpoints.SimpleTokenizer", clip_tokenizer)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Return a function that replaces an architecture by a small one and saves its encoder."""

    def save(family):
        config = small_model_cfg(FAMILIES[family])
        monkeypatch.setitem(factory._MODEL_CONFIGS, FAMILIES[family].architecture, config)
        folder = tmp_path / "saved"
        small_encoder(family, tmp_path).save(folder)
        return folder, config["text_cfg"].get("hf_tokenizer_name")

    return save


def serve_tokenizer(hub, folder, repository):
    for file in TEXT_FILES if repository else ():
        target = hub.folder / repository / file
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / file).rename(target)


@pytest.mark.parametrize(("family", "name"), NAMES.items())
def test_a_family_is_downloaded_by_its_name_and_then_needs_no_network(
    family, name, hub, saved, monkeypatch
):
    cfg = get_pretrained_cfg(*name.split("/"))
    repository, _, file = cfg["hf_hub"].rpartition("/")
    folder, tokenizer = saved(family)
    state = load_file(folder / WEIGHTS)
    served = hub.repository(repository)
    if file:
        torch.save(state, served / file)
    else:
        (folder / WEIGHTS).rename(served / WEIGHTS)
    serve_tokenizer(hub, folder, tokenizer)
    encoder = load_encoder(name)
    loaded = encoder.model.state_dict()
    assert all(torch.equal(loaded[key], tensor) for key, tensor in state.items())
    assert encoder.name == name
    assert encoder.license.name
    assert all(
        list(encoder.preprocess_cfg[key]) == list(cfg[key])
        for key in ("mean", "std", "interpolation", "resize_mode")
    )
    vectors = encoder.encode_labels(["dog", "cat"], ["a photo of a {}"])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_encoder(name).fingerprint == encoder.fingerprint


def test_the_tokenizer_of_an_architecture_without_pretrained_weights_is_downloaded(hub, saved):
    folder, tokenizer = saved("MetaCLIP 2, ViT-L")
    expected = load_encoder(f"local-dir:{folder}").encode_labels(["dog"], ["a {}"])
    (folder / "open_clip_config.json").rename(folder / "open_clip_model.json")
    serve_tokenizer(hub, folder, tokenizer)
    assert tokenizer == "google/mt5-base"
    assert not open_clip.list_pretrained_tags_by_model("ViT-L-14-worldwide")
    encoder = load_encoder(f"ViT-L-14-worldwide/{folder / WEIGHTS}")
    assert torch.equal(encoder.encode_labels(["dog"], ["a {}"]), expected)
