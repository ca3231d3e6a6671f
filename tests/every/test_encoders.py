"""What every encoder must do: the embedded ones, and others loaded from a local folder.

``towers`` are those with texts and patches; ``encoder`` are all that take images.
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

from surelabel.encoders import ENCODERS, TEMPLATES, OpenClipEncoder, load_encoder
from surelabel.encoders.interface import ENCODER_METHODS
from surelabel.errors import ConfigError, InputError

TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
RANDOM = {
    "vit": {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2},
    "resnet": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64},
}
TIMM = {"timm-vit": "timm:test_vit", "timm-resnet": "timm:test_resnet"}
TRAINABLE = [*sorted(ENCODERS), *RANDOM, *TIMM]
PARTS = ("patches", "self_aware", "attentive", "multi_layer", "trunk")
NAMES = ["dog", "hot dog", "zygote"]


def random_towers(kind):
    torch.manual_seed(0)
    config = {"embed_dim": 24, "vision_cfg": RANDOM[kind], "text_cfg": TEXT}
    preprocess_cfg = {
        "size": RANDOM[kind]["image_size"],
        "mean": [0.48, 0.46, 0.41],
        "std": [0.27, 0.26, 0.28],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    tokenizer = SimpleTokenizer(context_length=TEXT["context_length"])
    return OpenClipEncoder(
        CLIP(**config), tokenizer, name=kind, config=config, preprocess_cfg=preprocess_cfg
    )


def random_onnx(file):
    """Mean colour of 4 by 4 places, then a matrix."""
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 16, 16])
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 24])
    matrix = np.random.default_rng(0).normal(size=(48, 24)).astype(np.float32)
    nodes = [
        helper.make_node("AveragePool", ["image"], ["means"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["features"]),
    ]
    constants = [numpy_helper.from_array(matrix, "matrix")]
    graph = helper.make_graph(nodes, "tiny", [image], [features], constants)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), file)
    return file


def made(kind, folder):
    if kind in ENCODERS:
        return load_encoder(kind)
    if kind in TIMM:
        return load_encoder(TIMM[kind], pretrained=False)
    if kind == "onnx":
        return load_encoder(f"onnx:{random_onnx(folder / 'tiny.onnx')}")
    random_towers(kind).save(folder / kind)
    return load_encoder(f"local-dir:{folder / kind}")


@pytest.fixture(scope="module", params=[*TRAINABLE, "onnx"])
def encoder(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=[*sorted(ENCODERS), *RANDOM])
def towers(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=TRAINABLE)
def trainable(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=[*TIMM, "onnx"])
def without_texts(request, tmp_path_factory):
    return made(request.param, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def pixels(encoder):
    return prepared(encoder)


def prepared(encoder):
    rng = np.random.default_rng(0)
    sizes = [(40, 70), (100, 90), (33, 33), (20, 10)]
    images = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]
    return torch.stack([encoder.preprocess(Image.fromarray(p)) for p in images])


def everything(encoder, pixels):
    """Return all vectors of an encoder by name."""
    if not isinstance(encoder, OpenClipEncoder):
        return {"images": encoder.encode_images(pixels).pooled}
    plain, aware = encoder.encode_patches(pixels), encoder.encode_self_aware_patches(pixels)
    attentive = encoder.encode_patches_with_attention(pixels)
    sentences = encoder.encode_sentence_tokens(["a dog on a hill.", ""])
    return {
        "images": encoder.encode_images(pixels).pooled,
        "pooled beside patches": plain.pooled,
        "patches": plain.patches,
        "pooled beside self-aware patches": aware.pooled,
        "self-aware patches": aware.patches,
        "pooled beside attention": attentive.pooled,
        "patches beside attention": attentive.patches,
        "pooled beside the trunk": encoder.encode_trunk_tokens(pixels).pooled,
        "texts": encoder.encode_labels(NAMES, TEMPLATES["ensemble"][:4]),
        "sentences": encoder.encode_sentences(["a dog on a hill.", ""]),
        "pooled beside tokens": sentences.pooled,
        "tokens": sentences.patches[sentences.patch_mask],
    }


def tensors(features):
    """Return the tensors in features by name."""
    found = {name: getattr(features, name) for name in ("pooled", "patches", "attention")}
    found["trunk"] = features.layers and features.layers[-1]
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def test_vectors_have_length_one_and_the_stated_width(encoder, pixels):
    for what, vectors in everything(encoder, pixels).items():
        assert vectors.shape[-1] == encoder.width, what
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(vectors.shape[:-1]))


def test_the_same_input_gives_the_same_vectors(encoder, pixels):
    first, second = everything(encoder, pixels), everything(encoder, pixels)
    for what, vectors in first.items():
        assert torch.equal(vectors, second[what]), what


def test_a_batch_gives_what_its_images_give_one_by_one(encoder, pixels):
    for part in ("images", *filter(encoder.supports, PARTS)):
        see = getattr(encoder, ENCODER_METHODS[part])
        whole, alone = tensors(see(pixels)), [tensors(see(image[None])) for image in pixels]
        for name, tensor in whole.items():
            single = torch.cat([found[name] for found in alone])
            torch.testing.assert_close(tensor, single, atol=1e-4, rtol=1e-4)


def test_the_pooled_vector_does_not_depend_on_what_else_is_asked_for(towers):
    pixels = prepared(towers)
    pooled = towers.encode_images(pixels).pooled
    for see in (
        towers.encode_patches,
        towers.encode_self_aware_patches,
        towers.encode_patches_with_attention,
        towers.encode_trunk_tokens,
    ):
        torch.testing.assert_close(see(pixels).pooled, pooled, atol=1e-5, rtol=0)


def test_nothing_can_be_trained_by_accident(encoder, pixels):
    model = getattr(encoder, "model", torch.nn.Module().eval())  # ONNX has no parameters
    assert not any(p.requires_grad for p in model.parameters())
    assert not any(module.training for module in model.modules())
    for what, vectors in everything(encoder, pixels.clone().requires_grad_()).items():
        assert not vectors.requires_grad, what
        assert not vectors.is_inference(), what
    with torch.inference_mode():
        everything(encoder, pixels)


def test_patches_fill_the_grid_that_is_given(towers):
    pixels = prepared(towers)
    assert towers.encode_images(pixels).patches is None
    for see in (towers.encode_patches, towers.encode_self_aware_patches):
        features = see(pixels)
        down, across = features.grid
        assert features.patches.shape == (len(pixels), down * across, towers.width)
        larger = towers.with_image_size(2 * pixels.shape[-1])
        twice = torch.nn.functional.interpolate(pixels, scale_factor=2)
        assert getattr(larger, see.__name__)(twice).grid == (2 * down, 2 * across)


def test_patches_of_the_best_kind_that_is_named_are_given(towers):
    pixels = prepared(towers)
    assert towers.patch_kinds == ("self_aware", "patches")
    assert getattr(towers, ENCODER_METHODS[towers.patch_kinds[0]])(pixels).patches is not None
    assert towers.crop_mode in ("squash", "center", "border")


def test_a_towers_patches_look_at_each_other_and_its_trunk_has_a_token_for_each(towers):
    pixels = prepared(towers)
    for where in (towers, towers.with_image_size(2 * pixels.shape[-1])):
        seen = torch.nn.functional.interpolate(pixels, where.preprocess_cfg["size"])
        features, trunk = where.encode_patches_with_attention(seen), where.encode_trunk_tokens(seen)
        n, p = features.patches.shape[:2]
        assert features.grid == trunk.grid
        assert features.attention.shape == (n, p, p)
        torch.testing.assert_close(features.attention.sum(-1), torch.ones(n, p))
        torch.testing.assert_close(features.patches, where.encode_self_aware_patches(seen).patches)
        assert trunk.layers[-1].shape == (n, p, where.trunk_width)


def test_cells_have_normalized_outputs_of_several_layers(towers):
    pixels = prepared(towers)
    features = towers.encode_multi_layer_patches(pixels)
    n_layers, width = towers.multi_layer_shape
    n_cells = features.grid[0] * features.grid[1]
    assert features.multi_layer.shape == (len(pixels), n_cells, n_layers, width)
    assert features.patches.shape == (len(pixels), n_cells, towers.width)
    torch.testing.assert_close(features.patches.norm(dim=-1), torch.ones(len(pixels), n_cells))
    assert max(features.grid) <= 8
    norms, means = features.multi_layer.norm(dim=-1), features.multi_layer.mean(dim=-1)
    assert 0 < norms.min() <= norms.max() < 1.001  # below 1 if the outputs are nearly constant
    torch.testing.assert_close(means, torch.zeros_like(means), atol=1e-6, rtol=0)


def test_supported_kinds_are_computed_and_all_others_are_a_config_error(encoder, pixels):
    for part in PARTS:
        if encoder.supports(part):
            assert getattr(encoder, ENCODER_METHODS[part])(pixels).grid
        else:
            with pytest.raises(ConfigError, match="Use"):
                getattr(encoder, ENCODER_METHODS[part])(pixels)
    assert set(encoder.patch_kinds) == {p for p in PARTS[:2] if encoder.supports(p)}


def test_ladder_features_are_the_input_of_the_last_blocks_or_refused(encoder, pixels):
    if not encoder.supports("ladder"):
        asked = (
            lambda: encoder.encode_ladder_features(pixels, first_block=0, depth=1),
            lambda: encoder.last_blocks(1),
        )
        for call in asked:
            with pytest.raises(ConfigError, match=r"Use tiny-vit or ViT-B-16/openai"):
                call()
        return
    seen, upper = (
        encoder.encode_ladder_features(pixels, first_block=0, depth=2),
        encoder.last_blocks(2),
    )
    n, p, down, across = len(pixels), seen.self_aware_sum.shape[1], *seen.grid
    assert p == down * across
    assert seen.layers[-3].shape == (n, 1 + p, upper.width)
    assert seen.self_aware_sum.shape == (n, p, upper.width)
    *_, (_, last) = upper.run_blocks(seen.layers[-3])
    pooled = F.normalize(upper.pool(last), dim=-1)
    torch.testing.assert_close(pooled, encoder.encode_images(pixels).pooled, atol=1e-5, rtol=0)
    assert not any(t.requires_grad or t.is_inference() for t in (pooled, seen.self_aware_sum, last))


def test_names_read_with_prompts_are_frozen_texts_where_there_are_none(towers):
    texts = towers.deep_prompt_text_encoder(NAMES, TEMPLATES["one"], depth=1)
    expected = towers.encode_labels(NAMES, TEMPLATES["one"])
    torch.testing.assert_close(F.normalize(texts.encode(), dim=-1), expected, atol=1e-5, rtol=0)
    prompts = torch.ones(texts.depth, 2, texts.width, requires_grad=True)
    texts.encode(prompts).square().sum().backward()
    assert prompts.grad.norm() > 0


def test_an_encoder_is_itself_at_its_own_size(encoder):
    size, _ = encoder.preprocess_cfg["size"]
    assert encoder.with_image_size(size) is encoder


def test_a_text_does_not_depend_on_the_other_texts(towers):
    together = towers.encode_labels(NAMES, TEMPLATES["one"])
    alone = torch.cat([towers.encode_labels([name], TEMPLATES["one"]) for name in NAMES])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_a_saved_encoder_comes_back_exactly_without_a_network(
    encoder, pixels, tmp_path, monkeypatch
):
    def refuse(*arguments):
        raise OSError("the network is off")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    encoder.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    for stated in (
        "fingerprint",
        "width",
        "scale",
        "training_domain",
        "preprocess_cfg",
        "input_side",
        "crop_mode",
    ):
        assert getattr(again, stated) == getattr(encoder, stated), stated
    first, second = everything(encoder, pixels), everything(again, pixels)
    for what, vectors in first.items():
        assert torch.equal(vectors, second[what]), what
    assert again.labels_with_untrained_tokens(NAMES) == encoder.labels_with_untrained_tokens(NAMES)


def test_preparing_runs_in_a_worker_that_has_no_model(encoder):
    image = Image.new("RGB", (50, 40), "teal")
    packed = pickle.dumps(encoder.preprocess)
    assert len(packed) < 4000
    prepared = pickle.loads(packed)(image)
    assert torch.equal(prepared, encoder.preprocess(image))
    assert prepared.shape == (3, *encoder.preprocess_cfg["size"])


def test_only_an_encoder_with_a_training_domain_has_an_ood_score(encoder, pixels):
    ood_score = encoder.ood_score(encoder.encode_images(pixels).pooled)
    assert math.isnan(ood_score) == (encoder.training_domain == "")


def test_a_network_gives_the_vectors_of_the_frozen_encoder_before_it_is_trained(trainable):
    pixels = prepared(trainable)
    vectors = F.normalize(trainable.trainable_network()(pixels), dim=-1)
    torch.testing.assert_close(vectors.detach(), trainable.encode_images(pixels).pooled)
    assert vectors.requires_grad


def test_training_a_network_leaves_the_frozen_encoder_alone(trainable):
    pixels, before = prepared(trainable), trainable.encode_images(prepared(trainable)).pooled
    trained_a_little(trainable.trainable_network(), pixels)
    assert torch.equal(trainable.encode_images(pixels).pooled, before)
    assert not any(p.requires_grad or p.grad is not None for p in trainable.model.parameters())


def test_a_trained_network_comes_back_as_a_frozen_encoder_of_its_own(trainable, tmp_path):
    pixels, network = prepared(trainable), trainable.trainable_network()
    trained_a_little(network, pixels)
    tuned = trainable.with_network(network)
    wanted = F.normalize(network(pixels), dim=-1).detach()
    assert tuned.fingerprint != trainable.fingerprint
    assert tuned.name == f"{trainable.name} (fine-tuned)"
    for parameter in network.parameters():
        parameter.data.zero_()
    torch.testing.assert_close(tuned.encode_images(pixels).pooled, wanted)
    assert not any(p.requires_grad for p in tuned.model.parameters())
    tuned.save(tmp_path / "tuned")
    again = load_encoder(f"local-dir:{tmp_path / 'tuned'}")
    assert again.fingerprint == tuned.fingerprint
    assert torch.equal(again.encode_images(pixels).pooled, tuned.encode_images(pixels).pooled)


def test_the_text_tower_stays_while_the_image_tower_is_trained(towers):
    network = towers.trainable_network()
    trained_a_little(network, prepared(towers))
    tuned = towers.with_network(network)
    assert torch.equal(
        tuned.encode_labels(NAMES, TEMPLATES["one"]), towers.encode_labels(NAMES, TEMPLATES["one"])
    )


def test_a_network_of_something_else_is_refused(trainable):
    with pytest.raises(InputError, match=r"network must have the architecture of .*; got another"):
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
        "has no text tower": [
            lambda: without_texts.encode_labels(NAMES, TEMPLATES["one"]),
            lambda: without_texts.encode_sentences(["a dog."]),
            lambda: without_texts.encode_sentence_tokens(["a dog."]),
            lambda: without_texts.encode_sentence_block_tokens(["a dog."], depth=1),
            lambda: without_texts.deep_prompt_text_encoder(NAMES, TEMPLATES["one"], depth=1),
        ],
        "no patch vectors": [
            lambda: without_texts.encode_patches(prepared(without_texts)),
            lambda: without_texts.encode_self_aware_patches(prepared(without_texts)),
            lambda: without_texts.encode_patches_with_attention(prepared(without_texts)),
        ],
    }
    for expected, calls in asked.items():
        for call in calls:
            with pytest.raises(ConfigError, match=rf"{expected}.*method\.name=linear"):
                call()
    assert without_texts.patch_kinds == ()
    assert without_texts.with_dense_image_size() is without_texts
    assert without_texts.labels_with_untrained_tokens(NAMES) == []
    with pytest.raises(ConfigError, match=r"got 8 by 8\. Set encoder\.size=8"):
        without_texts.with_image_size(8)
