import json
import os

import pytest

from surelabel.encoders.loading.model_names import PREFIX_LOADERS, load_encoder
from surelabel.errors import ConfigError, DataError, UnknownName


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(
        UnknownName, match=r"'tiny-vti' is not the name of an encoder. Nearest: tiny-vit"
    ):
        load_encoder("tiny-vti")
    with pytest.raises(UnknownName, match=r"Did you mean ViT-B-16/openai\?"):
        load_encoder("ViT-B16/openai")
    with pytest.raises(UnknownName, match=r"got 'ViT-B-16'.* Available weights: openai"):
        load_encoder("ViT-B-16")
    with pytest.raises(UnknownName, match="Did you mean ViT-B-16/openai"):
        load_encoder("ViT-B-16/openia")


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"device must be a device that torch can use.* 'warp'"):
        load_encoder("tiny-vit", device="warp")


def test_an_unknown_kind_is_answered_with_all_kinds():
    for name in ("onx:encoder.onnx", "magic", ":", ""):
        with pytest.raises(UnknownName, match="is not the name of an encoder") as refused:
            load_encoder(name)
        assert all(f"{kind}:" in str(refused.value) for kind in PREFIX_LOADERS)


@pytest.mark.parametrize("name", ["tiny-vit", "ViT-B-16/openai", "local-dir:x"])
def test_settings_of_an_encoder_that_has_none_are_refused(name):
    message = rf"{name} accepts no settings; got .*'size': 3.*only onnx:FILE, "
    with pytest.raises(ConfigError, match=message):
        load_encoder(name, size=3)


@pytest.mark.parametrize("about", [{}, {"jax": "model"}, {"embedded": "tiny-vit", "timm": "x"}])
def test_a_saved_encoder_of_no_known_kind_is_refused(tmp_path, about):
    (tmp_path / "surelabel_encoder.json").write_text(json.dumps(about))
    with pytest.raises(
        DataError, match="one of the keys embedded, exported, features, onnx, quantized, scores"
    ):
        load_encoder(f"local-dir:{tmp_path}")


@pytest.mark.parametrize("name", ["surelabel_encoder.json", "open_clip_config.json"])
def test_a_folder_with_a_named_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=r"must contain open_clip_config\.json .* Missing: open"):
        load_encoder(f"local-dir:{tmp_path}")


@pytest.mark.parametrize("name", ["hf-hub:owner/name", "local-dir:/tmp/folder", "../folder"])
def test_a_saved_timm_network_has_a_name_of_timm(tmp_path, name):
    (tmp_path / "surelabel_encoder.json").write_text(json.dumps({"timm": name, "settings": {}}))
    with pytest.raises(UnknownName, match=f"has no network {name!r}"):
        load_encoder(f"local-dir:{tmp_path}")


@pytest.mark.parametrize("name", ["vit-b-16/opanai", "vit-b-16/openai", "ViTB16/OpenAI"])
def test_a_misspelt_name_with_weights_is_suggested_as_a_whole(name):
    with pytest.raises(UnknownName, match=r"Did you mean ViT-B-16/openai\?"):
        load_encoder(name)
