import copy
import inspect
import json
from dataclasses import fields
from pathlib import Path

import open_clip
import pytest
from open_clip.coca_model import MultimodalCfg

from surelabel.encoders.open_clip.architecture_settings import (
    DECODER_SETTINGS,
    MAX_LAYERS,
    MAX_PATCHES,
    MAX_WIDTH,
    MODEL_SETTINGS,
    TEXT_SETTINGS,
    VISION_SETTINGS,
    check_open_clip_architecture_settings,
)
from surelabel.errors import ConfigError

SHIPPED = sorted((Path(open_clip.__file__).parent / "model_configs").glob("*.json"))


@pytest.fixture
def changed(model_cfg):
    """Return a function that gives the settings with one other value at a dotted path."""

    def change(path, value):
        changed_cfg = copy.deepcopy(model_cfg)
        *sections, key = path.split(".")
        section = changed_cfg
        for name in sections:
            section = section.setdefault(name, {})
        section[key] = value
        return changed_cfg

    return change


def test_every_architecture_that_open_clip_contains_is_accepted():
    assert len(SHIPPED) >= len(open_clip.list_models()) > 100
    for file in SHIPPED:
        check_open_clip_architecture_settings(json.loads(file.read_text()), file.name)


def test_the_accepted_keys_are_the_arguments_of_the_constructors():
    for settings, section in (
        (VISION_SETTINGS, open_clip.CLIPVisionCfg),
        (TEXT_SETTINGS, open_clip.CLIPTextCfg),
        (DECODER_SETTINGS, MultimodalCfg),
    ):
        assert settings.keys() == {field.name for field in fields(section)}
    arguments = inspect.signature(open_clip.CLIP).parameters.keys() - {"cast_dtype", "output_dict"}
    assert MODEL_SETTINGS.keys() == arguments | {"custom_text", "multimodal_cfg"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("surprise", 1),
        ("cast_dtype", "float16"),
        ("text_cfg.trust_remote_code", True),
        ("text_cfg.tokenizer_kwargs.trust_remote_code", True),
        ("text_cfg.tokenizer_kwargs.trust_remote_code", False),
        ("text_cfg.tokenizer_kwargs.code_revision", "main"),
        ("text_cfg.tokenizer_kwargs.bpe_path", "/etc/passwd"),
        ("text_cfg.tokenizer_kwargs.gguf_file", "x.gguf"),
        ("text_cfg.act_kwargs.inplace", True),
        ("vision_cfg.norm_kwargs.device", "cuda"),
        ("vision_cfg.timm_model_kwargs", {"pretrained_cfg": {"file": "x.pth"}}),
        ("vision_cfg.timm_kwargs", {}),
        ("multimodal_cfg.surprise", 1),
        ("a\nb", 1),
    ],
)
def test_an_unknown_key_is_refused_by_name_in_one_line(changed, path, value):
    section, _, key = f"model_cfg.{path}".rpartition(".")
    with pytest.raises(ConfigError, match=f"^{section} in my file must contain only") as refused:
        check_open_clip_architecture_settings(changed(path, value), "my file")
    assert f"got {key!r}. Remove the setting" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("embed_dim", 10**9),
        ("embed_dim", 24.0),
        ("embed_dim", True),
        ("custom_text", "yes"),
        ("init_logit_scale", float("nan")),
        ("vision_cfg.width", MAX_WIDTH + 1),
        ("vision_cfg.layers", MAX_LAYERS + 1),
        ("vision_cfg.layers", [1, 1, 1]),
        ("vision_cfg.layers", [1, 1, 1, 10**9]),
        ("vision_cfg.image_size", 10**9),
        ("vision_cfg.image_size", [32, 32, 32]),
        ("vision_cfg.patch_size", 0),
        ("vision_cfg.mlp_ratio", 10**9),
        ("vision_cfg.timm_model_name", "hf-hub:owner/name"),
        ("vision_cfg.timm_model_name", "local-dir:/tmp/folder"),
        ("vision_cfg.timm_model_name", "../folder"),
        ("vision_cfg.timm_pool", "surprise"),
        ("vision_cfg.act_kwargs", "tanh"),
        ("vision_cfg.act_kwargs.approximate", ["tanh"]),
        ("text_cfg.context_length", 10**9),
        ("text_cfg.vocab_size", 10**12),
        ("text_cfg.heads", "8"),
        ("text_cfg.tokenizer_kwargs", ["clean"]),
        ("text_cfg.tokenizer_kwargs.clean", "surprise"),
        ("text_cfg.tokenizer_kwargs.language", "../../x"),
        ("text_cfg.tokenizer_mode", "surprise"),
        ("text_cfg.hf_model_name", "/tmp/folder"),
        ("text_cfg.hf_model_name", "../folder"),
        ("text_cfg.hf_model_name", "owner/name/file"),
        ("text_cfg.hf_model_name", "owner/..name\n"),
        ("text_cfg.hf_tokenizer_name", "~/folder"),
        ("text_cfg.hf_tokenizer_name", "hf-hub:owner/name"),
        ("text_cfg.hf_tokenizer_name", ""),
        ("text_cfg.hf_pooler_type", "surprise"),
        ("multimodal_cfg", [1]),
        ("multimodal_cfg.layers", 10**9),
    ],
)
def test_a_value_of_another_type_or_size_is_refused_with_the_accepted_values(changed, path, value):
    key = path.rpartition(".")[2]
    with pytest.raises(ConfigError, match=rf"{key}.* in my file must be .*; got ") as refused:
        check_open_clip_architecture_settings(changed(path, value), "my file")
    assert "\n" not in str(refused.value)


def test_the_number_of_patches_is_limited(changed):
    accepted = changed("vision_cfg.image_size", [8 * MAX_PATCHES // 128, 8 * 128])
    check_open_clip_architecture_settings(accepted, "my file")
    with pytest.raises(ConfigError, match=f"at most {MAX_PATCHES} patches; got 1048576"):
        check_open_clip_architecture_settings(changed("vision_cfg.image_size", 8192), "my file")


def test_harmless_settings_of_a_tokenizer_are_accepted_and_others_beside_them_refused(
    changed,
):
    kwargs = {"clean": "lower", "strip_sep_token": True, "language": "eng_Latn"}
    for accepted in (None, {}, kwargs):
        model_cfg = changed("text_cfg.tokenizer_kwargs", accepted)
        check_open_clip_architecture_settings(model_cfg, "my file")
    refused = changed("text_cfg.tokenizer_kwargs", {**kwargs, "token": "x"})
    with pytest.raises(ConfigError, match="got 'token'"):
        check_open_clip_architecture_settings(refused, "my file")
