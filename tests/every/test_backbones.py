"""What every backbone must do: the embedded ones, and others loaded from a local folder.

``towers`` are those with texts and patches; ``backbone`` are all that take pictures.
"""

import math
import pickle
import socket

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image

from surelabel.backbones import BACKBONES, TEMPLATES, Towers, load_backbone
from surelabel.errors import ConfigError, InputError

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
RANDOM = {
    "vit": {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2},
    "resnet": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64},
}
TIMM = {"timm-vit": "timm:test_vit", "timm-resnet": "timm:test_resnet"}
TRAINABLE = [*sorted(BACKBONES), *RANDOM, *TIMM]
PARTS = ("patches", "self_aware", "attentive", "trunk")
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


def random_onnx(file):
    """Mean colour of 4 by 4 places, then a matrix."""
    picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, ["n", 3, 16, 16])
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 24])
    matrix = np.random.default_rng(0).normal(size=(48, 24)).astype(np.float32)
    nodes = [
        helper.make_node(
            "AveragePool", ["picture"], ["means"], kernel_shape=[4, 4], strides=[4, 4]
        ),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["features"]),
    ]
    constants = [numpy_helper.from_array(matrix, "matrix")]
    graph = helper.make_graph(nodes, "tiny", [picture], [features], constants)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), file)
    return file


def made(kind, folder):
    if kind in BACKBONES:
        return load_backbone(kind)
    if kind in TIMM:
        return load_backbone(TIMM[kind], pretrained=False)
    if kind == "onnx":
        return load_backbone(f"onnx:{random_onnx(folder / 'tiny.onnx')}")
    random_towers(kind).save(folder / kind)
    return load_backbone(f"local-dir:{folder / kind}")


@pytest.fixture(scope="module", params=[*TRAINABLE, "onnx"])
def backbone(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=[*sorted(BACKBONES), *RANDOM])
def towers(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=TRAINABLE)
def trainable(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=[*TIMM, "onnx"])
def without_texts(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def pixels(backbone):
    return prepared(backbone)


def prepared(backbone):
    rng = np.random.default_rng(0)
    sizes = [(40, 70), (100, 90), (33, 33), (20, 10)]
    pictures = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]
    return torch.stack([backbone.prepare(Image.fromarray(p)) for p in pictures])


def everything(backbone, pixels):
    """All vectors that a backbone gives, by name."""
    if not isinstance(backbone, Towers):
        return {"images": backbone.images(pixels).pooled}
    plain, aware = backbone.patches(pixels), backbone.self_aware(pixels)
    attentive = backbone.attentive(pixels)
    return {
        "images": backbone.images(pixels).pooled,
        "pooled beside patches": plain.pooled,
        "patches": plain.patches,
        "pooled beside self-aware patches": aware.pooled,
        "self-aware patches": aware.patches,
        "pooled beside attention": attentive.pooled,
        "patches beside attention": attentive.patches,
        "pooled beside the trunk": backbone.trunk(pixels).pooled,
        "texts": backbone.texts(NAMES, TEMPLATES["ensemble"][:4]),
        "sentences": backbone.sentences(["a dog on a hill.", ""]),
    }


def tensors(features):
    """What is there of them, by name."""
    found = {name: getattr(features, name) for name in ("pooled", "patches", "attention")}
    found["trunk"] = features.layers and features.layers[-1]
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def test_vectors_have_length_one_and_the_stated_width(backbone, pixels):
    for what, vectors in everything(backbone, pixels).items():
        assert vectors.shape[-1] == backbone.width, what
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(vectors.shape[:-1]))


def test_the_same_input_gives_the_same_vectors(backbone, pixels):
    first, second = everything(backbone, pixels), everything(backbone, pixels)
    for what, vectors in first.items():
        assert torch.equal(vectors, second[what]), what


def test_a_batch_gives_what_its_pictures_give_one_by_one(backbone, pixels):
    for part in ("images", *filter(backbone.gives, PARTS)):
        see = getattr(backbone, part)
        whole, alone = tensors(see(pixels)), [tensors(see(picture[None])) for picture in pixels]
        for name, tensor in whole.items():
            single = torch.cat([found[name] for found in alone])
            torch.testing.assert_close(tensor, single, atol=1e-4, rtol=1e-4)


def test_the_pooled_vector_does_not_depend_on_what_else_is_asked_for(towers):
    pixels = prepared(towers)
    pooled = towers.images(pixels).pooled
    for see in (towers.patches, towers.self_aware, towers.attentive, towers.trunk):
        torch.testing.assert_close(see(pixels).pooled, pooled, atol=1e-5, rtol=0)


def test_nothing_can_be_trained_by_accident(backbone, pixels):
    model = getattr(backbone, "model", torch.nn.Module().eval())  # ONNX has no parameters
    assert not any(p.requires_grad for p in model.parameters())
    assert not any(module.training for module in model.modules())
    for what, vectors in everything(backbone, pixels.clone().requires_grad_()).items():
        assert not vectors.requires_grad, what
        assert not vectors.is_inference(), what
    with torch.inference_mode():
        everything(backbone, pixels)


def test_patches_fill_the_grid_that_is_given(towers):
    pixels = prepared(towers)
    assert towers.images(pixels).patches is None
    for see in (towers.patches, towers.self_aware):
        features = see(pixels)
        down, across = features.grid
        assert features.patches.shape == (len(pixels), down * across, towers.width)
        larger = towers.at(2 * pixels.shape[-1])
        twice = torch.nn.functional.interpolate(pixels, scale_factor=2)
        assert getattr(larger, see.__name__)(twice).grid == (2 * down, 2 * across)


def test_patches_of_the_best_kind_that_is_named_are_given(towers):
    pixels = prepared(towers)
    assert towers.dense_parts == ("self_aware", "patches")
    assert getattr(towers, towers.dense_parts[0])(pixels).patches is not None
    assert towers.cover in ("whole", "middle", "padded")


def test_a_towers_patches_look_at_each_other_and_its_trunk_has_a_token_for_each(towers):
    pixels = prepared(towers)
    for where in (towers, towers.at(2 * pixels.shape[-1])):
        seen = torch.nn.functional.interpolate(pixels, where.preprocess["size"])
        features, trunk = where.attentive(seen), where.trunk(seen)
        n, p = features.patches.shape[:2]
        assert features.grid == trunk.grid
        assert features.attention.shape == (n, p, p)
        torch.testing.assert_close(features.attention.sum(-1), torch.ones(n, p))
        torch.testing.assert_close(features.patches, where.self_aware(seen).patches)
        assert trunk.layers[-1].shape == (n, p, where.trunk_width)


def test_what_a_backbone_says_it_gives_it_gives_and_the_rest_is_a_config_error(backbone, pixels):
    for part in PARTS:
        if backbone.gives(part):
            assert getattr(backbone, part)(pixels).grid
        else:
            with pytest.raises(ConfigError, match=r"take|use"):
                getattr(backbone, part)(pixels)
    assert set(backbone.dense_parts) == {p for p in PARTS[:2] if backbone.gives(p)}


def test_a_ladder_starts_the_last_blocks_or_the_encoder_says_what_to_take(backbone, pixels):
    if not backbone.gives("ladder"):
        asked = (lambda: backbone.ladder(pixels, first=0, depth=1), lambda: backbone.upper(1))
        for call in asked:
            with pytest.raises(ConfigError, match=r"take tiny-vit, or ViT-B-16/openai"):
                call()
        return
    seen, upper = backbone.ladder(pixels, first=0, depth=2), backbone.upper(2)
    n, p, down, across = len(pixels), seen.beside.shape[1], *seen.grid
    assert p == down * across
    assert seen.layers[-3].shape == (n, 1 + p, upper.width)
    assert seen.beside.shape == (n, p, upper.width)
    *_, (_, last) = upper.steps(seen.layers[-3])
    pooled = F.normalize(upper.pooled(last), dim=-1)
    torch.testing.assert_close(pooled, backbone.images(pixels).pooled, atol=1e-5, rtol=0)
    assert not any(t.requires_grad or t.is_inference() for t in (pooled, seen.beside, last))


def test_names_read_with_prompts_are_frozen_texts_where_there_are_none(towers):
    texts = towers.deep_texts(NAMES, TEMPLATES["one"], depth=1)
    expected = towers.texts(NAMES, TEMPLATES["one"])
    torch.testing.assert_close(F.normalize(texts.vectors(), dim=-1), expected, atol=1e-5, rtol=0)
    prompts = torch.ones(texts.depth, 2, texts.width, requires_grad=True)
    texts.vectors(prompts).square().sum().backward()
    assert prompts.grad.norm() > 0


def test_a_backbone_is_itself_at_its_own_size(backbone):
    size, _ = backbone.preprocess["size"]
    assert backbone.at(size) is backbone


def test_a_text_does_not_depend_on_the_other_texts(towers):
    together = towers.texts(NAMES, TEMPLATES["one"])
    alone = torch.cat([towers.texts([name], TEMPLATES["one"]) for name in NAMES])
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
    for stated in ("fingerprint", "width", "scale", "world", "preprocess", "least_side", "cover"):
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


def test_a_network_gives_the_vectors_of_the_frozen_encoder_before_it_is_trained(trainable):
    pixels = prepared(trainable)
    vectors = F.normalize(trainable.network()(pixels), dim=-1)
    torch.testing.assert_close(vectors.detach(), trainable.images(pixels).pooled)
    assert vectors.requires_grad


def test_training_a_network_leaves_the_frozen_encoder_alone(trainable):
    pixels, before = prepared(trainable), trainable.images(prepared(trainable)).pooled
    trained_a_little(trainable.network(), pixels)
    assert torch.equal(trainable.images(pixels).pooled, before)
    assert not any(p.requires_grad or p.grad is not None for p in trainable.model.parameters())


def test_a_trained_network_comes_back_as_a_frozen_encoder_of_its_own(trainable, tmp_path):
    pixels, network = prepared(trainable), trainable.network()
    trained_a_little(network, pixels)
    tuned = trainable.with_network(network)
    wanted = F.normalize(network(pixels), dim=-1).detach()
    assert tuned.fingerprint != trainable.fingerprint
    assert tuned.name == f"{trainable.name} (fine-tuned)"
    for parameter in network.parameters():
        parameter.data.zero_()
    torch.testing.assert_close(tuned.images(pixels).pooled, wanted)
    assert not any(p.requires_grad for p in tuned.model.parameters())
    tuned.save(tmp_path / "tuned")
    again = load_backbone(f"local-dir:{tmp_path / 'tuned'}")
    assert again.fingerprint == tuned.fingerprint
    assert torch.equal(again.images(pixels).pooled, tuned.images(pixels).pooled)


def test_the_text_tower_stays_while_the_image_tower_is_trained(towers):
    network = towers.network()
    trained_a_little(network, prepared(towers))
    tuned = towers.with_network(network)
    assert torch.equal(tuned.texts(NAMES, TEMPLATES["one"]), towers.texts(NAMES, TEMPLATES["one"]))


def test_a_network_of_something_else_is_refused(trainable):
    with pytest.raises(InputError, match=r"must be a trained copy of what network\(\) of .* gave"):
        trainable.with_network(torch.nn.Linear(2, 2))


def trained_a_little(network, pixels):
    """One large step, in training mode, so that running means move as well."""
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(pixels).square().sum(dim=1).sqrt().sum().backward()
    optimizer.step()
    network.eval()


def test_an_encoder_without_texts_says_so_in_one_sentence(without_texts):
    asked = {
        "knows no words": [
            lambda: without_texts.texts(NAMES, TEMPLATES["one"]),
            lambda: without_texts.sentences(["a dog."]),
            lambda: without_texts.deep_texts(NAMES, TEMPLATES["one"], depth=1),
        ],
        "none for its patches": [
            lambda: without_texts.patches(prepared(without_texts)),
            lambda: without_texts.self_aware(prepared(without_texts)),
            lambda: without_texts.attentive(prepared(without_texts)),
        ],
    }
    for expected, calls in asked.items():
        for call in calls:
            with pytest.raises(ConfigError, match=rf"{expected}.*method\.name=linear"):
                call()
    assert without_texts.dense_parts == ()
    assert without_texts.dense() is without_texts
    assert without_texts.untrained(NAMES) == []
    with pytest.raises(ConfigError, match=r"8 by 8 are asked for: open it with backbone\.size=8"):
        without_texts.at(8)
