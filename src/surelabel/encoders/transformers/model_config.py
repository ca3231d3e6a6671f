"""Read and check the configuration of a dual encoder of transformers.

Only the keys in this file are passed to transformers. Therefore, a configuration cannot refer to
Python code, kernels or other packages.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from surelabel.encoders.loading.encoder_manifest import read_encoder_json_object
from surelabel.encoders.open_clip.architecture_settings import MAX_LAYERS, MAX_VOCABULARY
from surelabel.errors import ConfigError
from surelabel.file_readers import quote_of_file

CONFIG_FILE = "config.json"


class ModelKind(NamedTuple):
    """A kind of dual encoder of transformers.

    Attributes:
        model_class: Name of the model class in transformers.
        config_class: Name of the configuration class in transformers.
    """

    model_class: str
    config_class: str


MODEL_KINDS = {  # model_type in config.json: classes
    "clip": ModelKind("CLIPModel", "CLIPConfig"),
    "metaclip_2": ModelKind("MetaClip2Model", "MetaClip2Config"),
    "siglip": ModelKind("SiglipModel", "SiglipConfig"),
    "siglip2": ModelKind("Siglip2Model", "Siglip2Config"),
    "tipsv2": ModelKind("Tipsv2Model", "Tipsv2Config"),
}
MODEL_WORDS = """
initializer_factor logit_scale_init_value model_type projection_dim temperature_init_value
"""
TOWER_WORDS = """
attention_dropout attention_probs_dropout_prob bos_token_id drop_path_rate eos_token_id hidden_act
hidden_dropout_prob hidden_size image_size initializer_factor initializer_range intermediate_size
layer_norm_eps layerscale_value max_position_embeddings mlp_ratio num_attention_heads num_channels
num_hidden_layers num_patches num_register_tokens pad_token_id patch_size pooling_epsilon
projection_dim projection_size qkv_bias scale_sqrt_depth use_swiglu_ffn vision_use_head vocab_size
"""
TOWERS = ("text_config", "vision_config")


def read_transformers_model_config(file: Path) -> dict[str, Any]:
    """Return the accepted settings of a configuration file.

    Args:
        file: ``config.json`` of the model.

    Returns:
        The settings of the model, with the sections ``text_config`` and ``vision_config``. Keys
        that do not describe the architecture, such as ``auto_map``, are dropped.

    Raises:
        DataError: If the file is missing or damaged.
        ConfigError: If the kind of model is not supported, or a value has an invalid type or is out
            of range.
    """
    content = read_encoder_json_object(file)
    if content.get("model_type") not in [*MODEL_KINDS]:
        raise ConfigError(
            f"model_type in {file} must be a dual encoder of images and texts, one of "
            f"{', '.join(MODEL_KINDS)}; got {quote_of_file(content.get('model_type'))}. Use "
            "another model, or hf-hub:OWNER/NAME for a model of open_clip."
        )
    settings = _accepted_model_settings(content, MODEL_WORDS, file)
    for tower in TOWERS:
        section = content.get(tower)
        if not isinstance(section, Mapping):
            raise ConfigError(
                f"{file} must contain {tower}, an object; got {quote_of_file(section)}. Copy the "
                "file again."
            )
        settings[tower] = _accepted_model_settings(section, TOWER_WORDS, file)
    return settings


def _accepted_model_settings(section: Mapping[str, Any], words: str, file: Path) -> dict[str, Any]:
    settings = {k: v for k, v in section.items() if k in words.split() and v is not None}
    for key, value in settings.items():
        if not _is_accepted_model_setting(key, value):
            raise ConfigError(
                f"{key} in {file} must be a word, a number from -1 to {_largest_number(key)}, or "
                f"a height and width; got {quote_of_file(value)}. Copy the file again."
            )
    return settings


def _is_accepted_model_setting(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"[A-Za-z0-9_]{1,40}", value) is not None
    if isinstance(value, list) and key in ("image_size", "patch_size") and len(value) == 2:
        return all(_is_accepted_model_setting(key, side) for side in value)
    return isinstance(value, int | float) and -1 <= value <= _largest_number(key)


def _largest_number(key: str) -> int:
    return MAX_LAYERS if "layers" in key else MAX_VOCABULARY
