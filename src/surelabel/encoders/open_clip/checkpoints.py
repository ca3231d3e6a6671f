"""Load checkpoints of open_clip by name, from a file, from a folder or from the hub."""

import logging
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import open_clip
from open_clip.pretrained import get_pretrained_cfg, list_pretrained_tags_by_model
from open_clip.tokenizer import DEFAULT_CONTEXT_LENGTH, SimpleTokenizer

from surelabel.encoders.loading.encoder_manifest import read_encoder_json_object
from surelabel.encoders.loading.hub_files import (
    cached_hub_file,
    cached_or_downloaded_hub_file,
)
from surelabel.encoders.loading.licenses import (
    MODEL_CARD_FILE,
    model_card_license,
)
from surelabel.encoders.loading.similar_names import open_clip_name_hint
from surelabel.encoders.open_clip.architecture_settings import check_open_clip_architecture_settings
from surelabel.encoders.open_clip.checkpoint_config import (
    complete_open_clip_preprocess_config,
    read_open_clip_checkpoint_config,
)
from surelabel.encoders.open_clip.checkpoint_files import (
    WEIGHTS_FILES,
    checkpoint_folder_tokenizer,
    checkpoint_folder_weights,
    downloaded_text_files,
    hub_checkpoint_license,
    offline_remedy,
)
from surelabel.encoders.open_clip.checkpoint_model import (
    LOADING_ERRORS,
    load_open_clip_checkpoint_model,
)
from surelabel.encoders.open_clip.encoder import CONFIG_FILE, UNKNOWN_LICENSE, OpenClipEncoder
from surelabel.encoders.open_clip.hugging_face_texts import (
    check_hugging_face_package,
    check_sentencepiece_package,
    hugging_face_tokenizer,
    local_text_config,
)
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.records import EncoderLicense

FOLDER, HUB = "local-dir:", "hf-hub:"
READABLE_SUFFIXES = (".safetensors", ".pt", ".pth", ".bin")
REFUSED_SUFFIXES = (".ckpt", ".pkl", ".npz")
_log = logging.getLogger(__name__)


def load_open_clip_checkpoint_folder(folder: Path, device: str) -> OpenClipEncoder:
    """Load an open_clip model from a folder in the format of open_clip.

    Args:
        folder: Folder with ``open_clip_config.json``, weights and the files of the tokenizer. The
            first file of ``WEIGHTS_FILES`` that exists is loaded.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If a file is missing or damaged, or belongs to another model.
        ConfigError: If a setting is missing, not accepted or invalid.
        MissingPart: If the text tower needs transformers, which is not installed.
    """
    weights, name = checkpoint_folder_weights(folder), f"{FOLDER}{folder}"
    model_cfg, preprocess_cfg = read_open_clip_checkpoint_config(folder / CONFIG_FILE)
    text_cfg = model_cfg["text_cfg"]
    check_hugging_face_package(name, text_cfg)
    tokenizer_folder = checkpoint_folder_tokenizer(folder, text_cfg)
    check_sentencepiece_package(name, tokenizer_folder)
    return _build_open_clip_checkpoint_encoder(
        name,
        model_cfg,
        weights,
        device,
        preprocess_cfg=preprocess_cfg,
        tokenizer_folder=tokenizer_folder,
        text_config=local_text_config(name, folder, text_cfg),
        license=model_card_license(folder / MODEL_CARD_FILE, "the model card of the folder"),
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
    hint = open_clip_name_hint(repository)
    remedy = f"{'' if name in hint else hint}{offline_remedy(repository, None)}"
    config = cached_or_downloaded_hub_file(
        repository, CONFIG_FILE, encoder_name=name, remedy=remedy
    )
    model_cfg, preprocess_cfg = read_open_clip_checkpoint_config(config)
    return _load_downloaded_open_clip_checkpoint(
        name, model_cfg, repository, WEIGHTS_FILES, device, preprocess_cfg
    )


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
    if Path(weights).suffix in READABLE_SUFFIXES + REFUSED_SUFFIXES:
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
    config = open_clip.get_model_config(architecture)
    if cfg.get("quick_gelu"):
        config["quick_gelu"] = True  # a property of the weights, missing in the architecture
    repository, _, file = cfg["hf_hub"].rpartition("/")
    weights = (str(Path(file).with_suffix(".safetensors")), file) if file else WEIGHTS_FILES
    return _load_downloaded_open_clip_checkpoint(
        name,
        config,
        repository,
        tuple(dict.fromkeys(weights)),
        device,
        cfg,
    )


def _load_open_clip_checkpoint_file(
    name: str, architecture: str, weights: Path, device: str
) -> OpenClipEncoder:
    if weights.suffix not in READABLE_SUFFIXES:
        raise DataError(
            "Weights must be a .safetensors file, or a .pt, .pth or .bin file that contains only "
            f"tensors; got {weights}. Convert the file to safetensors, because loading a pickle "
            "can run malicious code."
        )
    if not weights.is_file():
        raise DataError(
            f"{name} must contain the path of a weights file; {weights} does not exist. Check the "
            "path."
        )
    model_cfg = open_clip.get_model_config(architecture)
    check_hugging_face_package(name, model_cfg["text_cfg"])
    cfg_file = weights.with_suffix(".json")
    cfg = read_encoder_json_object(cfg_file).get("preprocess_cfg", {}) if cfg_file.is_file() else {}
    preprocess_cfg = complete_open_clip_preprocess_config(cfg, str(cfg_file))
    remedy = offline_remedy("the model", model_cfg["text_cfg"])
    folder, text_config = downloaded_text_files(name, model_cfg["text_cfg"], remedy=remedy)
    return _build_open_clip_checkpoint_encoder(
        name,
        model_cfg,
        weights,
        device,
        preprocess_cfg=preprocess_cfg,
        tokenizer_folder=folder or weights.parent,
        text_config=text_config,
    )


def _load_downloaded_open_clip_checkpoint(
    name: str,
    model_cfg: dict[str, Any],
    repository: str,
    weights_files: tuple[str, ...],
    device: str,
    preprocess_cfg: Mapping[str, Any],
) -> OpenClipEncoder:
    """Load a checkpoint whose weights, tokenizer and text tower are on the hub.

    Args:
        name: Model name of the encoder.
        model_cfg: Settings of the architecture.
        repository: Name of the repository of the weights.
        weights_files: Names of the weights file, in the order of preference.
        device: Device of the encoder.
        preprocess_cfg: Complete preprocessing settings.
    """
    check_open_clip_architecture_settings(model_cfg, name)
    text_cfg = model_cfg["text_cfg"]
    remedy = offline_remedy(repository, text_cfg, weights_files)
    folder, text_config = downloaded_text_files(name, text_cfg, remedy=remedy)
    is_cached = cached_hub_file(repository, weights_files) is not None
    weights = cached_or_downloaded_hub_file(
        repository, *weights_files, encoder_name=name, remedy=remedy
    )
    return _build_open_clip_checkpoint_encoder(
        name,
        model_cfg,
        weights,
        device,
        preprocess_cfg=preprocess_cfg,
        tokenizer_folder=folder or weights.parent,
        text_config=text_config,
        license=hub_checkpoint_license(repository, can_download=not is_cached),
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
    license: EncoderLicense = UNKNOWN_LICENSE,
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
        license: License of the weights.
    """
    tokenizer = _open_clip_checkpoint_tokenizer(name, model_cfg["text_cfg"], tokenizer_folder)
    megabytes = f"{weights.stat().st_size / 1e6:,.1f}"
    _log.info("Loading the weights of %s (%s MB)", name, megabytes)
    model: Any = load_open_clip_checkpoint_model(name, model_cfg, weights, text_config)
    stated = {key: value for key, value in preprocess_cfg.items() if value is not None}
    _log.info("License of %s: %s", name, license)
    return OpenClipEncoder(
        model.to(device),
        tokenizer,
        name=name,
        config=model_cfg,
        preprocess_cfg={"size": model.visual.image_size, **stated},
        license=license,
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
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"The tokenizer of {name} in {folder} cannot be loaded ({type(error).__name__}: "
            f"{reason}). Copy the files of {text_cfg.get('hf_tokenizer_name')} from the hub again."
        ) from error
