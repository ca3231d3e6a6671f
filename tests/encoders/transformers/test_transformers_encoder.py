import copy
import importlib.util
import json
import pickle
import shutil
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

from surelabel import Recognizer
from surelabel.config import Choice, Run
from surelabel.encoders import load_encoder
from surelabel.encoders.transformers.patches import resize_patch_features
from surelabel.errors import ConfigError, DataError, InputError, MissingPart, SurelabelError
from surelabel.records import Features, Images

sys.path.append(str(Path(__file__).parent))

from small_models import MODELS, write_small_model

SENTENCES = ["a photo of a dog.", "the red cat in the sofa"]
LABELS, TEMPLATES = ["dog", "hot dog"], ["a photo of a {}.", "the {}"]


def images():
    random = np.random.default_rng(0)
    sizes = [(50, 90), (96, 64), (32, 32), (40, 60)]
    return [Image.fromarray(random.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]


@pytest.fixture(scope="module", params=MODELS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def folder(kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_small_model(kind, folder)
    return folder


@pytest.fixture(scope="module")
def encoder(folder):
    return load_encoder(f"transformers:{folder}")


@pytest.fixture(scope="module")
def reference(folder):
    return transformers.AutoModel.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def pixels(encoder):
    return torch.stack([encoder.preprocess(image) for image in images()])


@pytest.fixture(scope="module")
def inputs(folder):
    """The input of the image tower, by the image processor of transformers."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return processor(images=images(), return_tensors="pt")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    write_small_model("SigLIP 2", folder)
    return folder


@pytest.fixture
def small(written, tmp_path):
    """A copy of a small model that a test can change."""
    return Path(shutil.copytree(written, tmp_path / "model"))


def changed(folder, file, **values):
    """Change settings of a JSON file, and return the model name of the folder."""
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return f"transformers:{folder}"


def test_pixels_are_those_of_the_image_processor(encoder, pixels, inputs, kind):
    if kind == "SigLIP 2 NaFlex":
        for name, expected in encoder.preprocess.unpack(pixels)._asdict().items():
            torch.testing.assert_close(expected, inputs[name].to(expected.dtype), msg=name)
        return
    atol = 1 / 255 if kind == "TIPSv2" else 1e-6  # it has no processor that uses Pillow
    torch.testing.assert_close(pixels, inputs["pixel_values"], atol=atol + 1e-6, rtol=0)


def test_vectors_and_similarities_are_those_of_transformers(
    encoder, reference, pixels, inputs, folder, kind
):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(
        SENTENCES, padding="max_length", truncation=True, max_length=16, return_tensors="pt"
    )
    images = encoder.preprocess.unpack(pixels)._asdict() if "spatial_shapes" in inputs else {}
    with torch.no_grad():
        outputs = reference(**(images or {"pixel_values": pixels}), **tokens)
    vectors, texts = encoder.encode_images(pixels).pooled, encoder.encode_sentences(SENTENCES)
    torch.testing.assert_close(vectors, outputs.image_embeds, atol=1e-5, rtol=0)
    torch.testing.assert_close(texts, outputs.text_embeds, atol=1e-5, rtol=0)
    logits = encoder.scale * vectors @ texts.T + (encoder.logit_bias or 0)
    torch.testing.assert_close(logits, outputs.logits_per_image, atol=1e-3, rtol=0)
    assert (encoder.logit_bias is None) == (not kind.startswith("SigLIP"))
    assert encoder.width == vectors.shape[1] == texts.shape[1]


def test_a_label_is_the_mean_over_its_templates(encoder):
    vectors = encoder.encode_labels(LABELS, TEMPLATES)
    for label, vector in zip(LABELS, vectors, strict=True):
        sentences = [template.replace("{}", label) for template in TEMPLATES]
        mean = encoder.encode_sentences(sentences).mean(dim=0)
        torch.testing.assert_close(vector, mean / mean.norm())
    assert encoder.encode_sentences([]).shape == (0, encoder.width)
    assert encoder.count_cut_tokens(["dog", "a dog " * 20])[0] == 0
    assert encoder.count_cut_tokens(["dog", "a dog " * 20])[1] > 10


def outputs_of_tower(model, encoder, pixels):
    """Return the output tokens of the image tower, and the size of the patch grid of each image."""
    if pixels.shape[-2:] == (32, 32):
        return model.vision_model(pixel_values=pixels).last_hidden_state, torch.tensor([[4, 4]])
    inputs = encoder.preprocess.unpack(pixels)
    return model.vision_model(**inputs._asdict()).last_hidden_state, inputs.spatial_shapes


def project_token(model, kind, token):
    """Return unit vectors of outputs ``(n, w)`` of the tower, each pooled alone."""
    if kind.startswith("SigLIP"):
        token = model.vision_model.head(token[:, None])
    elif kind != "TIPSv2":
        token = model.visual_projection(model.vision_model.post_layernorm(token))
    return F.normalize(token, dim=-1)


@torch.no_grad()
def test_patches_are_in_the_joint_space(encoder, reference, pixels, kind):
    features = encoder.encode_patches(pixels)
    assert features.grid == (4, 4)
    assert features.patches.shape == (4, 16, encoder.width)
    pooled = encoder.encode_images(pixels).pooled
    torch.testing.assert_close(features.pooled, pooled, atol=1e-5, rtol=0)
    n_prefix = {"CLIP": 1, "MetaCLIP 2": 1, "TIPSv2": 2}.get(kind, 0)
    square = pixels[2:3]  # its patch grid has 4 by 4 patches
    tokens, _ = outputs_of_tower(reference, encoder, square)
    expected = project_token(reference, kind, tokens[:, n_prefix + 3])
    torch.testing.assert_close(features.patches[2:3, 3], expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_self_aware_patches_have_values_as_queries_and_keys(encoder, reference, pixels, kind):
    changed, square, added = copy.deepcopy(reference), pixels[2:3], []
    encoder_blocks = changed.vision_model.encoder
    block = (encoder_blocks.layer if kind == "TIPSv2" else encoder_blocks.layers)[-1]
    attention = block.attention if kind == "TIPSv2" else block.self_attn
    attention.q_proj = attention.k_proj = attention.v_proj
    attention.register_forward_hook(lambda _, inputs, output: added.append(output[0]))
    tokens, _ = outputs_of_tower(changed, encoder, square)
    is_class_pooled = kind in ("CLIP", "MetaCLIP 2")
    tokens = added[0] if is_class_pooled else tokens
    n_prefix = {"CLIP": 1, "MetaCLIP 2": 1, "TIPSv2": 2}.get(kind, 0)
    expected = project_token(changed, kind, tokens[:, n_prefix + 5])
    features = encoder.encode_patches_with_attention(pixels)
    torch.testing.assert_close(features.patches[2:3, 5], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        encoder.encode_self_aware_patches(pixels).patches, features.patches, atol=1e-5, rtol=0
    )
    assert features.attention.shape == (4, 16, 16)
    torch.testing.assert_close(features.attention.sum(dim=-1), torch.ones(4, 16))
    best_kind = "patches" if kind == "TIPSv2" else "self_aware"
    assert (encoder.patch_kinds[0], len(encoder.patch_kinds)) == (best_kind, 2)


def test_images_with_other_patch_grids_do_not_change_the_patches_of_an_image(encoder, pixels):
    features = encoder.encode_patches_with_attention(pixels)
    for row in range(len(pixels)):
        alone = encoder.encode_patches_with_attention(pixels[row : row + 1])
        for name in ("pooled", "patches", "attention"):
            seen, expected = getattr(features, name)[row], getattr(alone, name)[0]
            torch.testing.assert_close(seen, expected, atol=1e-5, rtol=0)


def test_a_grid_is_resized_by_bilinear_interpolation():
    generator = torch.Generator().manual_seed(0)
    patches = torch.randn(2, 6, 5, generator=generator)
    attention = torch.rand(2, 6, 6, generator=generator)
    resized = resize_patch_features(
        Features(torch.zeros(2, 5), patches, (2, 3), attention=attention), (4, 4)
    )
    maps = F.interpolate(patches.transpose(1, 2).unflatten(2, (2, 3)), size=(4, 4), mode="bilinear")
    expected = F.normalize(maps.flatten(2).transpose(1, 2), dim=-1)
    torch.testing.assert_close(resized.patches, expected)
    torch.testing.assert_close(resized.attention.sum(dim=-1), torch.ones(2, 16))
    columns = F.interpolate(attention[:, :1].unflatten(2, (2, 3)), size=(4, 4), mode="bilinear")
    expected = columns.flatten(1) / columns.flatten(1).sum(dim=1, keepdim=True)
    torch.testing.assert_close(resized.attention[:, 0], expected)


def test_a_larger_image_has_more_patches(encoder, pixels, kind):
    assert encoder.with_image_size(encoder.input_side) is encoder
    larger = encoder.with_image_size(64)
    assert larger is encoder.with_image_size(64)
    assert larger.fingerprint != encoder.fingerprint
    enlarged = torch.stack([larger.preprocess(image) for image in images()])
    features = larger.encode_patches_with_attention(enlarged)
    assert features.grid == (8, 8)
    assert features.attention.shape == (4, 64, 64)
    pooled = larger.encode_images(enlarged).pooled
    torch.testing.assert_close(features.pooled, pooled, atol=1e-5, rtol=0)
    assert not torch.allclose(pooled, encoder.encode_images(pixels).pooled, atol=1e-4)
    with pytest.raises(ConfigError, match=r"multiple of 8 pixels .* got 60\. .* multiple is 64"):
        encoder.with_image_size(60)


@pytest.mark.filterwarnings("ignore:.*no selected patch:UserWarning")
def test_dense_methods_run_with_a_model_of_transformers(folder, kind, tmp_path):
    if kind not in ("CLIP", "SigLIP 2 NaFlex"):
        return
    files = [tmp_path / f"{index}.png" for index in range(4)]
    for image, file in zip(images(), files, strict=True):
        image.save(file)
    encoder = Choice(f"transformers:{folder}")
    for name, settings in (("dense_regions", {"windows": 1}), ("region_statistics", {})):
        method = Choice(name, {"background": "none", **settings})
        recognizer = Recognizer(Run(encoder=encoder, method=method), ["dog", "cat", "bird"])
        if name == "region_statistics":
            recognizer.fit(Images(files))
        scores = recognizer.predict(Images(files)).scores
        assert scores.shape == (4, 3)
        assert np.isfinite(scores).all()
        paths, maps = recognizer.localize(Images(files))
        assert (len(paths), *maps.shape[:2]) == (4, 4, 3)


def test_a_saved_encoder_is_loaded_without_a_network(encoder, pixels, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError("the network is off")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    encoder.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    for stated in ("name", "fingerprint", "width", "scale", "logit_bias", "preprocess_cfg"):
        assert getattr(again, stated) == getattr(encoder, stated), stated
    assert torch.equal(again.encode_images(pixels).pooled, encoder.encode_images(pixels).pooled)
    labels = encoder.encode_labels(LABELS, TEMPLATES)
    assert torch.equal(again.encode_labels(LABELS, TEMPLATES), labels)
    assert torch.equal(again.preprocess(images()[0]), encoder.preprocess(images()[0]))


def test_a_trained_network_becomes_a_frozen_encoder(encoder, pixels):
    network = encoder.trainable_network()
    before = encoder.encode_images(pixels).pooled
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(pixels).square().sum().backward()
    optimizer.step()
    tuned = encoder.with_network(network)
    trained = F.normalize(network(pixels), dim=-1).detach()
    torch.testing.assert_close(tuned.encode_images(pixels).pooled, trained)
    assert torch.equal(encoder.encode_images(pixels).pooled, before)
    assert not torch.allclose(trained, before, atol=1e-3)
    assert tuned.name.endswith("(fine-tuned)")
    assert tuned.fingerprint != encoder.fingerprint
    assert not any(parameter.requires_grad for parameter in tuned.model.parameters())
    with pytest.raises(InputError, match=r"network must have the architecture of"):
        encoder.with_network(torch.nn.Linear(2, 2))


def test_other_features_are_refused_with_an_alternative(encoder, pixels):
    refused = [
        lambda: encoder.encode_trunk_tokens(pixels),
        lambda: encoder.encode_ladder_features(pixels, first_block=0, depth=1),
        lambda: encoder.trainable_last_blocks(1),
        lambda: encoder.encode_sentence_tokens(SENTENCES),
        lambda: encoder.context_prompt_text_encoder(LABELS, length=2),
        lambda: encoder.deep_prompt_text_encoder(LABELS, TEMPLATES, depth=1),
    ]
    for call in refused:
        with pytest.raises(ConfigError, match=r"(Use|or use) .*(open_clip|tiny-vit|default size)"):
            call()
    with pytest.raises(InputError, match=r"preprocessed images of shape \(n, 3, "):
        encoder.encode_images(torch.zeros(1, 3, 20, 24))


def test_preprocessing_can_be_pickled_for_data_workers(encoder):
    packed = pickle.dumps(encoder.preprocess)
    image = images()[0]
    assert torch.equal(pickle.loads(packed)(image), encoder.preprocess(image))
    assert encoder.crop_mode in ("squash", "center")
    assert encoder.input_side >= 32


def test_a_recognizer_contains_its_encoder(small, tmp_path):
    recognizer = Recognizer.zero_shot(f"transformers:{small}", LABELS)
    scores = recognizer.predict(images()[:2]).scores
    recognizer.save(tmp_path / "saved")
    for file in small.iterdir():
        if file.is_file():
            file.unlink()
    again = Recognizer.load(tmp_path / "saved")
    assert np.array_equal(again.predict(images()[:2]).scores, scores)


def test_a_model_folder_cannot_run_its_python_file(small):
    mark = small / "executed"
    code = f"open({str(mark)!r}, 'w').close()\n"
    for file in ("configuration_tips.py", "modeling_tips.py"):
        (small / file).write_text(code)
    auto_map = {
        "AutoConfig": "configuration_tips.Config",
        "AutoModel": "modeling_tips.Model",
        "AutoTokenizer": ["modeling_tips.Tokenizer", None],
    }
    name = changed(small, "config.json", auto_map=auto_map, attn_implementation="owner/kernel")
    assert "auto_map" not in load_encoder(name).settings
    changed(small, "tokenizer_config.json", auto_map=auto_map)
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json must not contain 'auto_map'"):
        load_encoder(name)
    assert not mark.exists()


def test_missing_files_are_all_named(tmp_path):
    with pytest.raises(
        DataError,
        match=r"Missing: config\.json; model\.safetensors; preprocessor_config\.json or "
        r"processor_config\.json; one of tokenizer\.json, .*several files are not supported",
    ):
        load_encoder(f"transformers:{tmp_path}")
    with pytest.raises(DataError, match=r"existing folder or a repository .*got 'no-such-folder'"):
        load_encoder("transformers:no-such-folder")


def test_without_a_network_all_files_of_a_repository_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        DataError,
        match=r"transformers:owner/name needs the file config\.json .*HF_HUB_OFFLINE is set.*"
        r"use transformers:FOLDER: config\.json, model\.safetensors, preprocessor_config\.json or",
    ):
        load_encoder("transformers:owner/name")


def test_without_the_package_the_extra_is_named(small, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPart, match=r"Run pip install 'surelabel\[texts\]'"):
        load_encoder(f"transformers:{small}")


def test_a_tokenizer_that_needs_sentencepiece_says_so(tmp_path, monkeypatch):
    write_small_model("SigLIP", tmp_path)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "sentencepiece" else find(name)
    )
    with pytest.raises(MissingPart, match=r"needs the package sentencepiece.*Run pip install"):
        load_encoder(f"transformers:{tmp_path}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "blip"}, r"model_type in .* clip, metaclip_2, siglip, .*got 'blip'"),
        ({"model_type": ["clip"]}, r"model_type in .* must be a dual encoder"),
        ({"text_config": None}, r"must contain text_config, an object; got None"),
        ({"vision_config": {"num_hidden_layers": 10**6}}, r"num_hidden_layers in .* to 256"),
        ({"vision_config": {"image_size": [32, {}]}}, r"image_size in .*a height and width"),
        ({"vision_config": {"hidden_act": "../x"}}, r"hidden_act in .* must be a word"),
        (
            {"vision_config": {"hidden_size": 33}},
            r"describe a SiglipModel; building the model fail",
        ),
        ({"vision_config": {"hidden_size": 4092}}, r"all weights of its architecture, \d+ values"),
    ],
)
def test_a_configuration_that_is_not_accepted_is_refused(small, values, message):
    with pytest.raises(SurelabelError, match=message):
        load_encoder(changed(small, "config.json", **values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"do_rescale": False}, r"do_rescale in .*must be True; got False"),
        ({"rescale_factor": 1.0}, r"rescale_factor in .*must be 0\.0039"),
        ({"resample": 0}, r"interpolation in .*bicubic, bilinear; got 0"),
        ({"size": {"shortest_edge": 40}, "do_center_crop": True}, r"crop_size in .*40 pixels"),
        ({"size": {"height": 32}}, r"width of size in .*integer from 1 to 8192; got None"),
        ({"size": "large"}, r"size in .*an object with height and width; got 'large'"),
        ({"image_mean": [0.5]}, r"mean in .*three numbers"),
    ],
)
def test_preprocessing_that_is_not_supported_is_refused(small, values, message):
    with pytest.raises(ConfigError, match=message):
        load_encoder(changed(small, "preprocessor_config.json", **values))


def test_settings_of_the_processor_can_be_in_the_file_of_the_newer_format(small):
    pixels = load_encoder(f"transformers:{small}").preprocess(images()[0])
    settings = json.loads((small / "preprocessor_config.json").read_text())
    (small / "preprocessor_config.json").unlink()
    content = {"image_processor": settings, "processor_class": "SiglipProcessor"}
    (small / "processor_config.json").write_text(json.dumps(content))
    assert torch.equal(load_encoder(f"transformers:{small}").preprocess(images()[0]), pixels)


def test_damaged_or_incomplete_weights_are_refused(small):
    weights = small / "model.safetensors"
    state = load_file(weights)
    state["other"] = state.pop("vision_model.head.probe")
    save_file(state, weights, metadata={"format": "pt"})
    with pytest.raises(DataError, match=r"failed \(vision_model\.head\.probe is missing\)"):
        load_encoder(f"transformers:{small}")
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(DataError, match=r"model\.safetensors is damaged"):
        load_encoder(f"transformers:{small}")
