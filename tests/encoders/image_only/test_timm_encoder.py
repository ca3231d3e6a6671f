import json

import numpy as np
import pytest
import timm
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file, save_file

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, UnknownName

IMAGE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 70, 3), dtype=np.uint8))


def random(name="test_vit", **settings):
    return load_encoder(f"timm:{name}", pretrained=False, **settings)


@pytest.fixture
def weights(tmp_path):
    """A file as timm publishes it, with the classifier, and the network in it."""
    torch.manual_seed(1)
    network = timm.create_model("test_resnet", pretrained=False).eval()
    file = tmp_path / "model.safetensors"
    save_file(network.state_dict(), file)
    return file, network


@pytest.mark.parametrize("name", ["test_vit", "test_resnet", "test_efficientnet", "test_convnext"])
def test_the_vector_is_what_the_network_pools_before_its_classifier(name):
    encoder = random(name)
    network = encoder.model
    pixels = encoder.preprocess(IMAGE)[None]
    with torch.no_grad():
        pooled = network.forward_head(network.forward_features(pixels), pre_logits=True)
    torch.testing.assert_close(encoder.encode_images(pixels).pooled, F.normalize(pooled, dim=-1))
    assert encoder.width == pooled.shape[1]


def test_images_are_prepared_as_timm_states_but_whole():
    encoder = random()
    stated = timm.data.resolve_model_data_config(encoder.model)
    assert encoder.preprocess_cfg == {
        "size": list(stated["input_size"][1:]),
        "mean": list(stated["mean"]),
        "std": list(stated["std"]),
        "interpolation": stated["interpolation"],
        "resize_mode": "shortest",
        "fill_color": 0,
    }
    transform = timm.data.create_transform(**{**stated, "crop_pct": 1.0})
    torch.testing.assert_close(encoder.preprocess(IMAGE), transform(IMAGE))


def test_random_weights_come_from_their_seed_and_touch_no_other_draw():
    torch.manual_seed(5)
    undisturbed = torch.rand(3)
    torch.manual_seed(5)
    first = random()
    assert torch.equal(torch.rand(3), undisturbed)
    assert random().fingerprint == first.fingerprint != random(seed=1).fingerprint


def test_weights_from_a_file_are_those_of_the_network_with_its_classifier(weights):
    file, network = weights
    encoder = load_encoder("timm:test_resnet", weights=str(file))
    pixels = encoder.preprocess(IMAGE)[None]
    with torch.no_grad():
        pooled = network.forward_head(network.forward_features(pixels), pre_logits=True)
    torch.testing.assert_close(encoder.encode_images(pixels).pooled, F.normalize(pooled, dim=-1))


@pytest.mark.parametrize("classes", [0, 7])
def test_weights_may_have_another_classifier_or_none(weights, classes):
    file, _ = weights
    state = load_file(file)
    whole = load_encoder("timm:test_resnet", weights=str(file))
    for key in ("fc.weight", "fc.bias"):
        state[key] = state[key][:classes].contiguous()
    save_file({k: v for k, v in state.items() if len(v.shape) == 0 or len(v)}, file)
    other = load_encoder("timm:test_resnet", weights=str(file))
    assert other.fingerprint == whole.fingerprint


def test_weights_that_lack_a_tensor_or_have_one_too_many_are_refused(weights):
    file, _ = weights
    state = load_file(file)
    first = next(k for k in state if k.endswith("conv1.weight") or k == "conv1.0.weight")
    for wrong in (
        {k: v for k, v in state.items() if k != first},
        {**state, "extra.weight": torch.zeros(2)},
        {k: v for k, v in state.items() if k.startswith("fc")},
    ):
        save_file(wrong, file)
        with pytest.raises(DataError, match="must contain all weights of timm:test_resnet"):
            load_encoder("timm:test_resnet", weights=str(file))
    with pytest.raises(DataError, match="must contain all weights of timm:test_vit"):
        load_encoder("timm:test_vit", weights=str(file))
    save_file({}, file)
    with pytest.raises(
        DataError, match=r"must contain the weights of timm:test_vit; the file is empty"
    ):
        load_encoder("timm:test_vit", weights=str(file))


def test_a_file_that_is_no_safetensors_is_refused(weights):
    file, _ = weights
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match=r"model\.safetensors is damaged: .* Copy the file again"):
        load_encoder("timm:test_resnet", weights=str(file))
    with pytest.raises(DataError, match=r"gone\.safetensors cannot be read: .*No such file"):
        load_encoder("timm:test_resnet", weights=str(file.with_name("gone.safetensors")))
    with pytest.raises(DataError, match=r"must be a \.safetensors file; got .*model\.pth"):
        load_encoder("timm:test_resnet", weights=str(file.with_suffix(".pth")))


def test_weights_that_cannot_be_downloaded_are_explained_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        DataError, match=r"timm:test_vit needs the file model\.safetensors of timm/"
    ):
        load_encoder("timm:test_vit")
    with pytest.raises(DataError, match=r"encoder\.weights=FILE to .* encoder\.pretrained=false"):
        load_encoder("timm:test_vit")


def test_a_network_without_published_weights_says_so():
    bare = next(n for n in timm.list_models() if not timm.get_pretrained_cfg(n).hf_hub_id)
    with pytest.raises(
        DataError, match=rf"timm:{bare} needs safetensors weights, .* does not contain"
    ):
        load_encoder(f"timm:{bare}")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("resnet5O", "resnet50"),
        ("test_vit.nosuchtag", r"test_vit\.r160_in1k"),
        ("hf-hub:timm/resnet50", "Nearest"),
        ("", "Nearest: none"),
    ],
)
def test_an_unknown_network_is_answered_with_the_nearest(name, near):
    with pytest.raises(UnknownName, match=rf"timm .* has no network '{name}'.*{near}"):
        load_encoder(f"timm:{name}")


@pytest.mark.parametrize("name", ["test_vit", "test_resnet"])
def test_images_may_have_another_size(name, tmp_path):
    encoder = random(name, size=64, resize_mode="squash")
    assert encoder.preprocess(IMAGE).shape == (3, 64, 64)
    assert encoder.crop_mode == "squash"
    encoder.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert again.preprocess_cfg == encoder.preprocess_cfg
    assert again.fingerprint == encoder.fingerprint != random(name).fingerprint


def test_a_size_or_preparation_that_does_not_fit_is_refused():
    for size in (-1, 10**6):
        with pytest.raises(ConfigError, match=rf"size must be the side .* got {size}"):
            random(size=size)
    with pytest.raises(ConfigError, match="timm:test_vit does not support images of 3 by 3 pixels"):
        random(size=3)
    with pytest.raises(ConfigError, match="resize_mode in timm:test_vit must be one of shortest"):
        random(resize_mode="crop")
    with pytest.raises(ConfigError, match=r"timm:test_vit has no setting mean\. Its settings are"):
        random(mean=[0.5] * 3)
    with pytest.raises(ConfigError, match="pretrained must have the type of its default"):
        load_encoder("timm:test_vit", pretrained="no")


def test_a_small_saved_file_cannot_request_a_large_network(tmp_path):
    random().save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    file.write_text(file.read_text().replace("test_vit", "vit_large_patch14_224"))
    expected = r"must contain all weights of timm:vit_large.*, \d{9} values; got \d{6} values"
    with pytest.raises(DataError, match=expected):
        load_encoder(f"local-dir:{tmp_path / 'saved'}")


def test_a_saved_one_that_was_changed_is_refused(tmp_path):
    random().save(tmp_path / "saved")
    name, file = f"local-dir:{tmp_path / 'saved'}", tmp_path / "saved" / "model.safetensors"
    state = load_file(file)
    save_file({**state, "cls_token": state["cls_token"] + 1}, file)
    with pytest.raises(DataError, match="for the loaded weights of timm:test_vit; got"):
        load_encoder(name)
    save_file({k: v for k, v in state.items() if k != "cls_token"}, file)
    with pytest.raises(DataError, match="must contain all weights of timm:test_vit"):
        load_encoder(name)
    about = tmp_path / "saved" / "surelabel_encoder.json"
    for change, message in (
        ({"settings": {"x": 1}}, "must contain settings"),
        ({"settings": {"size": "x"}}, "size must"),
    ):
        about.write_text(json.dumps({**json.loads(about.read_text()), **change}))
        with pytest.raises((DataError, ConfigError), match=message):
            load_encoder(name)
