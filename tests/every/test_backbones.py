"""What every backbone must do: the embedded ones, and others loaded from a local folder."""

import math
import pickle
import socket

import numpy as np
import pytest
import torch
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image

from surelabel.backbones import BACKBONES, TEMPLATES, Towers, load_backbone

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
RANDOM = {
    "vit": {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2},
    "resnet": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64},
}
NAMES = ["dog", "hot dog", "zygote"]


def random_towers(kind):
    torch.manual_seed(0)
    config = {"embed_dim": 24, "vision_cfg": RANDOM[kind], "text_cfg": TEXT}
    preprocess = {
        "size": RANDOM[kind]["image_size"],
        "mean": [0.48, 0.46, 0.41],
        "std": [0.27, 0.26, 0.28],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    tokenizer = SimpleTokenizer(context_length=TEXT["context_length"])
    return Towers(CLIP(**config), tokenizer, name=kind, config=config, preprocess=preprocess)


@pytest.fixture(scope="module", params=[*sorted(BACKBONES), *RANDOM])
def backbone(request, tmp_path_factory):
    if request.param in BACKBONES:
        return load_backbone(request.param)
    folder = tmp_path_factory.mktemp("models") / request.param
    random_towers(request.param).save(folder)
    return load_backbone(f"local-dir:{folder}")


@pytest.fixture(scope="module")
def pixels(backbone):
    rng = np.random.default_rng(0)
    sizes = [(40, 70), (100, 90), (33, 33), (20, 10)]
    pictures = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]
    return torch.stack([backbone.prepare(Image.fromarray(p)) for p in pictures])


def everything(backbone, pixels):
    """All vectors that a backbone gives, by name."""
    plain, aware = backbone.patches(pixels), backbone.self_aware(pixels)
    return {
        "images": backbone.images(pixels).pooled,
        "pooled beside patches": plain.pooled,
        "patches": plain.patches,
        "pooled beside self-aware patches": aware.pooled,
        "self-aware patches": aware.patches,
        "texts": backbone.texts(NAMES, TEMPLATES["ensemble"][:4]),
        "sentences": backbone.sentences(["a dog on a hill.", ""]),
    }


def test_vectors_have_length_one_and_the_stated_width(backbone, pixels):
    for what, vectors in everything(backbone, pixels).items():
        assert vectors.shape[-1] == backbone.width, what
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(vectors.shape[:-1]))


def test_the_same_input_gives_the_same_vectors(backbone, pixels):
    first, second = everything(backbone, pixels), everything(backbone, pixels)
    for what, vectors in first.items():
        assert torch.equal(vectors, second[what]), what


def test_a_batch_gives_what_its_pictures_give_one_by_one(backbone, pixels):
    for see in (backbone.images, backbone.patches, backbone.self_aware):
        whole = see(pixels)
        alone = [see(picture[None]) for picture in pixels]
        pooled = torch.cat([f.pooled for f in alone])
        torch.testing.assert_close(whole.pooled, pooled, atol=1e-5, rtol=0)
        if whole.patches is not None:
            patches = torch.cat([f.patches for f in alone])
            torch.testing.assert_close(whole.patches, patches, atol=1e-5, rtol=0)


def test_the_pooled_vector_does_not_depend_on_what_else_is_asked_for(backbone, pixels):
    pooled = backbone.images(pixels).pooled
    for see in (backbone.patches, backbone.self_aware):
        torch.testing.assert_close(see(pixels).pooled, pooled, atol=1e-5, rtol=0)


def test_nothing_can_be_trained_by_accident(backbone, pixels):
    assert not any(p.requires_grad for p in backbone.model.parameters())
    assert not any(module.training for module in backbone.model.modules())
    for what, vectors in everything(backbone, pixels.clone().requires_grad_()).items():
        assert not vectors.requires_grad, what
        assert not vectors.is_inference(), what
    with torch.inference_mode():
        everything(backbone, pixels)


def test_patches_fill_the_grid_that_is_given(backbone, pixels):
    assert backbone.images(pixels).patches is None
    for see in (backbone.patches, backbone.self_aware):
        features = see(pixels)
        down, across = features.grid
        assert features.patches.shape == (len(pixels), down * across, backbone.width)
        larger = backbone.at(2 * pixels.shape[-1])
        twice = torch.nn.functional.interpolate(pixels, scale_factor=2)
        assert getattr(larger, see.__name__)(twice).grid == (2 * down, 2 * across)


def test_patches_of_the_best_kind_that_is_named_are_given(backbone, pixels):
    assert backbone.dense_parts == ("self_aware", "patches")
    assert getattr(backbone, backbone.dense_parts[0])(pixels).patches is not None
    assert backbone.cover in ("whole", "middle", "padded")


def test_a_text_does_not_depend_on_the_other_texts(backbone):
    together = backbone.texts(NAMES, TEMPLATES["one"])
    alone = torch.cat([backbone.texts([name], TEMPLATES["one"]) for name in NAMES])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_a_saved_backbone_comes_back_exactly_without_a_network(
    backbone, pixels, tmp_path, monkeypatch
):
    def refuse(*arguments):
        raise OSError("the network is off")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    backbone.save(tmp_path / "saved")
    again = load_backbone(f"local-dir:{tmp_path / 'saved'}")
    for stated in ("fingerprint", "width", "scale", "world", "preprocess"):
        assert getattr(again, stated) == getattr(backbone, stated), stated
    first, second = everything(backbone, pixels), everything(again, pixels)
    for what, vectors in first.items():
        assert torch.equal(vectors, second[what]), what
    assert again.untrained(NAMES) == backbone.untrained(NAMES)


def test_preparing_runs_in_a_worker_that_has_no_model(backbone):
    picture = Image.new("RGB", (50, 40), "teal")
    packed = pickle.dumps(backbone.prepare)
    assert len(packed) < 4000
    prepared = pickle.loads(packed)(picture)
    assert torch.equal(prepared, backbone.prepare(picture))
    assert prepared.shape == (3, *backbone.preprocess["size"])


def test_only_a_backbone_whose_world_is_known_finds_pictures_strange(backbone, pixels):
    strangeness = backbone.strangeness(backbone.images(pixels).pooled)
    assert math.isnan(strangeness) == (backbone.world == "")
