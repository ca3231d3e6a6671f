"""Load checkpoints of open_clip by name, from a file, from a folder or from the hub."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import open_clip
from open_clip.pretrained import get_pretrained_cfg, list_pretrained_tags_by_model
from open_clip.tokenizer import DEFAULT_CONTEXT_LENGTH, SimpleTokenizer

from surelabel.encoders.loading.encoder_manifest import read_encoder_json_object
from surelabel.encoders.loading.hub_files import (
    cached_or_downloaded_hub_file,
    cached_or_downloaded_hub_folder,
)
from surelabel.encoders.open_clip.architecture_settings import check_open_clip_architecture_settings
from surelabel.encoders.open_clip.checkpoint_config import (
    check_open_clip_preprocess_config,
    read_open_clip_checkpoint_config,
)
from surelabel.encoders.open_clip.checkpoint_model import (
    LOADING_ERRORS,
    load_open_clip_checkpoint_model,
    open_clip_checkpoint_error,
)
from surelabel.encoders.open_clip.encoder import CONFIG_FILE, WEIGHTS_FILE, OpenClipEncoder
from surelabel.encoders.open_clip.hugging_face_texts import (
    HUB_TEXT_CONFIG_FILE,
    TOKENIZER_FILES,
    VOCABULARY_FILES,
    check_hugging_face_package,
    hugging_face_tokenizer,
    local_text_config,
)
from surelabel.errors import ConfigError, DataError, UnknownName

FOLDER, HUB = "local-dir:", "hf-hub:"
SAFE_SUFFIXES, OTHER_SUFFIXES = (".safetensors", ".pt"), (".bin", ".pth", ".ckpt", ".pkl", ".npz")


def load_open_clip_checkpoint_folder(folder: Path, device: str) -> OpenClipEncoder:
    """Load an open_clip model from a folder in the format of open_clip.

    Args:
        folder: Folder with ``open_clip_config.json`` and ``open_clip_model.safetensors``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If a file is missing or damaged, or belongs to another model.
        ConfigError: If a setting is missing, not accepted or invalid.
        MissingPart: If the text tower needs transformers, which is not installed.
    """
    config, weights = folder / CONFIG_FILE, folder / WEIGHTS_FILE
    missing = [file.name for file in (config, weights) if not file.is_file()]
    if missing:
        raise DataError(
            f"{folder} must contain {CONFIG_FILE} and {WEIGHTS_FILE}. Missing: "
            f"{', '.join(missing)}. Pickle files (.bin, .pth) are not read. Convert the weights to "
            "safetensors."
        )
    name = f"{FOLDER}{folder}"
    model_cfg, preprocess_cfg = read_open_clip_checkpoint_config(config)
    check_hugging_face_package(name, model_cfg["text_cfg"])
    return _build_open_clip_checkpoint_encoder(
        name,
        model_cfg,
        weights,
        device,
        preprocess_cfg=preprocess_cfg,
        tokenizer_folder=folder,
        text_config=local_text_config(name, folder, model_cfg["text_cfg"]),
    )


def load_open_clip_checkpoint_from_hub(repository: str, device: str) -> OpenClipEncoder:
    """Load an open_clip model from a repository of the Hugging Face hub.

    Args:
        repository: Name of the repository, ``OWNER/NAME``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If a file is missing or damaged, or cannot be downloaded.
        ConfigError: If a setting is missing, not accepted or invalid.
        MissingPart: If the text tower needs transformers, which is not installed.
    """
    name = f"{HUB}{repository}"
    model_cfg, preprocess_cfg = read_open_clip_checkpoint_config(
        cached_or_downloaded_hub_file(repository, CONFIG_FILE, encoder_name=name)
    )
    weights = cached_or_downloaded_hub_file(repository, WEIGHTS_FILE, encoder_name=name)
    return _load_downloaded_open_clip_checkpoint(name, model_cfg, weights, device, preprocess_cfg)


def load_open_clip_checkpoint_by_name(name: str, device: str) -> OpenClipEncoder:
    """Load pretrained weights or a weights file into an architecture of open_clip.

    Args:
        name: Model name, ``ARCHITECTURE/PRETRAINED`` or ``ARCHITECTURE/FILE``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        UnknownName: If open_clip has no pretrained weights with the name ``PRETRAINED`` for the
            architecture. The message contains the most similar name.
        DataError: If a file is missing or damaged, belongs to another model, or cannot be
            downloaded.
        ConfigError: If a setting is missing, not accepted or invalid.
        MissingPart: If the text tower needs transformers, which is not installed.
    """
    architecture, _, weights = name.partition("/")
    if Path(weights).suffix in SAFE_SUFFIXES + OTHER_SUFFIXES:
        return _load_open_clip_checkpoint_file(
            name, architecture, Path(weights).expanduser(), device
        )
    return _load_pretrained_open_clip_checkpoint(name, architecture, weights, device)


def _load_pretrained_open_clip_checkpoint(
    name: str, architecture: str, tag: str, device: str
) -> OpenClipEncoder:
    cfg = get_pretrained_cfg(architecture, tag)
    if not cfg:
        tags = list_pretrained_tags_by_model(architecture)
        nearest = get_close_matches(tag, tags, n=1, cutoff=0.3)
        hint = f" Did you mean {architecture}/{nearest[0]}?" if nearest else ""
        raise UnknownName(
            f"{architecture} needs the name of pretrained weights or a file, "
            f"{architecture}/PRETRAINED or {architecture}/FILE; got {name!r}.{hint} Available "
            f"weights: {', '.join(tags) or 'none; use a file'}."
        )
    repository, _, file = cfg["hf_hub"].rpartition("/")
    if file and Path(file).suffix != ".safetensors":
        raise DataError(
            f"{name} must have safetensors weights; the hub has {file} of {repository}, a pickle. "
            "Loading a pickle can run malicious code. Convert the file to safetensors, and use "
            f"{architecture}/FILE.safetensors."
        )
    weights = cached_or_downloaded_hub_file(repository, file or WEIGHTS_FILE, encoder_name=name)
    config = open_clip.get_model_config(architecture)
    if cfg.get("quick_gelu"):
        config["quick_gelu"] = True  # a property of the weights, missing in the architecture
    return _load_downloaded_open_clip_checkpoint(name, config, weights, device, cfg)


def _load_open_clip_checkpoint_file(
    name: str, architecture: str, weights: Path, device: str
) -> OpenClipEncoder:
    if weights.suffix not in SAFE_SUFFIXES:
        raise DataError(
            "Weights must be a .safetensors file, or a .pt file that contains only tensors; "
            f"got {weights}. Convert the file to safetensors, because loading a pickle can run "
            "malicious code."
        )
    if not weights.is_file():
        raise DataError(
            f"{name} must contain the path of a weights file; {weights} does not exist."
        )
    cfg_file = weights.with_suffix(".json")
    cfg = read_encoder_json_object(cfg_file).get("preprocess_cfg", {}) if cfg_file.is_file() else {}
    check_open_clip_preprocess_config(cfg, str(cfg_file))
    config = open_clip.get_model_config(architecture)
    return _load_downloaded_open_clip_checkpoint(name, config, weights, device, cfg)


def _load_downloaded_open_clip_checkpoint(
    name: str,
    model_cfg: dict[str, Any],
    weights: Path,
    device: str,
    preprocess_cfg: Mapping[str, Any],
) -> OpenClipEncoder:
    """Load a checkpoint whose tokenizer and text tower, if any, are named on the hub."""
    check_open_clip_architecture_settings(model_cfg, name)
    check_hugging_face_package(name, model_cfg["text_cfg"])
    text_cfg, folder, text_config = model_cfg["text_cfg"], weights.parent, None
    if text_cfg.get("hf_tokenizer_name"):
        folder = cached_or_downloaded_hub_folder(
            text_cfg["hf_tokenizer_name"],
            required=VOCABULARY_FILES,
            optional=TOKENIZER_FILES,
            encoder_name=name,
        )
    if text_cfg.get("hf_model_name"):
        text_config = cached_or_downloaded_hub_file(
            text_cfg["hf_model_name"], HUB_TEXT_CONFIG_FILE, encoder_name=name
        )
    return _build_open_clip_checkpoint_encoder(
        name,
        model_cfg,
        weights,
        device,
        preprocess_cfg=preprocess_cfg,
        tokenizer_folder=folder,
        text_config=text_config,
    )


def _build_open_clip_checkpoint_encoder(
    name: str,
    model_cfg: dict[str, Any],
    weights: Path,
    device: str,
    *,
    preprocess_cfg: Mapping[str, Any],
    tokenizer_folder: Path,
    text_config: Path | None,
) -> OpenClipEncoder:
    """Load the model and the tokenizer, and return an encoder.

    Args:
        name: Model name of the encoder.
        model_cfg: Settings of the architecture.
        weights: File with the weights.
        device: Device of the encoder.
        preprocess_cfg: Preprocessing settings. A ``size`` replaces the image size of the model.
        tokenizer_folder: Folder of the tokenizer, if the tokenizer needs transformers.
        text_config: Configuration of the text tower, if the text tower needs transformers.
    """
    model: Any = load_open_clip_checkpoint_model(name, model_cfg, weights, text_config)
    stated = {key: value for key, value in preprocess_cfg.items() if value is not None}
    return OpenClipEncoder(
        model.to(device),
        _open_clip_checkpoint_tokenizer(name, model_cfg["text_cfg"], tokenizer_folder),
        name=name,
        config=model_cfg,
        preprocess_cfg={"size": model.visual.image_size, **stated},
    )


def _open_clip_checkpoint_tokenizer(name: str, text_cfg: Mapping[str, Any], folder: Path) -> Any:
    """Return the tokenizer of transformers in a folder, or the tokenizer of CLIP.

    Raises:
        DataError: If the tokenizer cannot be loaded.
    """
    try:
        if text_cfg.get("hf_tokenizer_name"):
            return hugging_face_tokenizer(folder, text_cfg)
        return SimpleTokenizer(
            context_length=text_cfg.get("context_length", DEFAULT_CONTEXT_LENGTH),
            **(text_cfg.get("tokenizer_kwargs") or {}),
        )
    except (ConfigError, DataError):
        raise
    except LOADING_ERRORS as error:
        raise open_clip_checkpoint_error(name, error) from error
