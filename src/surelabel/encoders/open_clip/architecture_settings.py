"""Check the settings of an open_clip architecture against the lists of accepted keys and values.

The settings of a checkpoint become arguments of constructors. Therefore every key and every value
that is not in these lists is refused.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from surelabel.encoders.image_inputs.preprocessing import MAX_SIDE
from surelabel.errors import ConfigError
from surelabel.file_readers import quote_of_file

MAX_WIDTH = 2**14
MAX_LAYERS = 256  # of a tower, or of one stage of a ResNet
MAX_HEADS = 1024
MAX_MLP_RATIO = 64
MAX_CONTEXT = 4096  # tokens of a sentence
MAX_VOCABULARY = 2**21  # tokens of a tokenizer
MAX_PATCHES = 2**14  # of an image
DEFAULT_PATCH_SIZE = 16  # of open_clip, in pixels
HUB_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?"


class AcceptedSetting(NamedTuple):
    """Accepted values of a setting.

    Attributes:
        expected: Description of the accepted values, for error messages.
        accepts: Function that returns True for an accepted value.
    """

    expected: str
    accepts: Callable[[Any], bool]


SettingTable = Mapping[str, "AcceptedSetting | SettingTable"]


def _integer(low: int, high: int) -> AcceptedSetting:
    return AcceptedSetting(
        f"an integer from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
    )


def _number(low: float, high: float) -> AcceptedSetting:
    return AcceptedSetting(
        f"a number from {low} to {high}",
        lambda value: type(value) in (int, float) and low <= value <= high,
    )


def _choice(*values: str) -> AcceptedSetting:
    return AcceptedSetting(
        f"one of {', '.join(repr(value) for value in values)}", lambda value: value in values
    )


def _name(pattern: str, expected: str) -> AcceptedSetting:
    return AcceptedSetting(
        expected, lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None
    )


def _several(count: int, part: AcceptedSetting) -> AcceptedSetting:
    return AcceptedSetting(
        f"a list of {count} values, each {part.expected}",
        lambda value: (
            isinstance(value, list) and len(value) == count and all(map(part.accepts, value))
        ),
    )


def _either(first: AcceptedSetting, second: AcceptedSetting) -> AcceptedSetting:
    return AcceptedSetting(
        f"{first.expected}, or {second.expected}",
        lambda value: first.accepts(value) or second.accepts(value),
    )


def _optional(setting: AcceptedSetting) -> AcceptedSetting:
    return AcceptedSetting(
        f"{setting.expected}, or null", lambda value: value is None or setting.accepts(value)
    )


FLAG = AcceptedSetting("true or false", lambda value: isinstance(value, bool))
HUB_REPOSITORY = _optional(_name(HUB_NAME, "a name on the Hugging Face hub, OWNER/NAME"))
LAYERS, WIDTH, HEADS = _integer(1, MAX_LAYERS), _integer(1, MAX_WIDTH), _integer(1, MAX_HEADS)
SIDE, TOKEN_ID = _integer(1, MAX_SIDE), _integer(0, MAX_VOCABULARY)
BLOCK_SETTINGS: SettingTable = {  # of the transformer blocks of both towers
    "act_kwargs": {"approximate": _choice("none", "tanh")},
    "block_type": _optional(_choice("default", "custom")),
    "final_ln_after_pool": FLAG,
    "ls_init_value": _optional(_number(0, 1)),
    "mlp_ratio": _number(0, MAX_MLP_RATIO),
    "norm_kwargs": {"eps": _number(0, 1)},
    "output_tokens": FLAG,
    "qk_norm": FLAG,
    "scale_attn": FLAG,
    "scale_attn_inner": FLAG,
    "scale_fc": FLAG,
    "scale_heads": FLAG,
    "scaled_cosine_attn": FLAG,
    "width": WIDTH,
}
VISION_SETTINGS: SettingTable = {
    **BLOCK_SETTINGS,
    "attentional_pool": _either(FLAG, _choice("parallel", "cascade")),
    "attn_pooler_heads": HEADS,
    "attn_pooler_queries": _integer(1, MAX_CONTEXT),
    "head_width": WIDTH,
    "image_size": _either(SIDE, _several(2, SIDE)),
    "layers": _either(LAYERS, _several(4, LAYERS)),
    "no_ln_pre": FLAG,
    "patch_dropout": _number(0, 1),
    "patch_size": _optional(SIDE),
    "pool_type": _choice("tok", "avg", "none"),
    "pos_embed_type": _choice("learnable", "sin_cos_2d"),
    "timm_drop": _number(0, 1),
    "timm_drop_path": _optional(_number(0, 1)),
    "timm_model_name": _optional(
        _name(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?", "the name of a timm architecture")
    ),
    "timm_model_pretrained": FLAG,
    "timm_pool": _choice("", "avg", "avgmax", "max", "token", "map", "abs_attn", "rot_attn"),
    "timm_proj": _optional(_choice("", "linear", "mlp", "none")),
    "timm_proj_bias": FLAG,
}
TEXT_SETTINGS: SettingTable = {
    **BLOCK_SETTINGS,
    "context_length": _integer(1, MAX_CONTEXT),
    "embed_cls": FLAG,
    "eos_id": TOKEN_ID,
    "heads": HEADS,
    "hf_model_name": HUB_REPOSITORY,
    "hf_model_pretrained": FLAG,
    "hf_pooler_type": _optional(
        _choice("mean_pooler", "max_pooler", "cls_pooler", "cls_last_hidden_state_pooler")
    ),
    "hf_proj_type": _optional(_choice("linear", "mlp")),
    "hf_tokenizer_name": HUB_REPOSITORY,
    "layers": LAYERS,
    "no_causal_mask": FLAG,
    "pad_id": TOKEN_ID,
    "pool_type": _choice("argmax", "eos", "first", "last", "none"),
    "proj_bias": FLAG,
    "proj_type": _choice("linear", "none"),
    "tokenizer_kwargs": {
        "clean": _choice("canonicalize", "lower", "whitespace"),
        "language": _optional(_name(r"[A-Za-z_]{2,16}", "a language code, such as eng_Latn")),
        "strip_sep_token": FLAG,
    },
    "tokenizer_mode": _optional(_choice("", "clips")),
    "vocab_size": _integer(1, MAX_VOCABULARY),
}
DECODER_SETTINGS: SettingTable = {  # of the caption decoder of CoCa
    **TEXT_SETTINGS,
    "attn_pooler_heads": HEADS,
    "dim_head": WIDTH,
    "n_queries": _integer(1, MAX_CONTEXT),
}
MODEL_SETTINGS: SettingTable = {
    "custom_text": FLAG,
    "embed_dim": WIDTH,
    "init_logit_bias": _optional(_number(-1000, 1000)),
    "init_logit_scale": _number(-1000, 1000),
    "multimodal_cfg": DECODER_SETTINGS,
    "nonscalar_logit_scale": FLAG,
    "quick_gelu": FLAG,
    "text_cfg": TEXT_SETTINGS,
    "vision_cfg": VISION_SETTINGS,
}


def check_open_clip_architecture_settings(model_cfg: Mapping[str, Any], source: str) -> None:
    """Check that all settings of an architecture have accepted names and values.

    ``trust_remote_code`` and paths of files are not accepted. Sizes are limited, so that a small
    file cannot request an arbitrarily large network.

    Args:
        model_cfg: Settings of the architecture, the ``model_cfg`` of open_clip.
        source: Name of the file or encoder that contains the settings, for error messages.

    Raises:
        ConfigError: If a setting is unknown, or has a value of the wrong type or out of range.
    """
    _check_accepted_settings(model_cfg, MODEL_SETTINGS, "model_cfg", source)
    vision_cfg = model_cfg.get("vision_cfg") or {}
    sides = vision_cfg.get("image_size", 1)
    height, width = sides if isinstance(sides, list) else (sides, sides)
    patch_size = vision_cfg.get("patch_size") or DEFAULT_PATCH_SIZE
    n_patches = (height // patch_size) * (width // patch_size)
    if n_patches > MAX_PATCHES:
        raise ConfigError(
            f"image_size and patch_size of vision_cfg in {source} must result in at most "
            f"{MAX_PATCHES} patches; got {n_patches}. Copy the file that belongs to the weights."
        )


def _check_accepted_settings(
    settings: Any, accepted: SettingTable, section: str, source: str
) -> None:
    """Check a section and its subsections.

    Raises:
        ConfigError: If a setting is unknown, or has a value that is not accepted.
    """
    if not isinstance(settings, Mapping):
        raise ConfigError(
            f"{section} in {source} must be an object; got {quote_of_file(settings)}. Copy the "
            "file that belongs to the weights."
        )
    for key, value in settings.items():
        rule = accepted.get(key)
        if rule is None:
            raise ConfigError(
                f"{section} in {source} must contain only accepted settings of open_clip; got "
                f"{quote_of_file(key)}. Remove the setting, or copy the file that belongs to the "
                "weights."
            )
        if isinstance(rule, AcceptedSetting):
            if not rule.accepts(value):
                raise ConfigError(
                    f"{key} of {section} in {source} must be {rule.expected}; got "
                    f"{quote_of_file(value)}. Copy the file that belongs to the weights."
                )
        elif value is not None:
            _check_accepted_settings(value, rule, f"{section}.{key}", source)
