"""Load checkpoints of open_clip by name, from a file, from a folder or from the hub."""

import importlib.util
import pickle
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import open_clip
from open_clip.pretrained import get_pretrained_cfg, list_pretrained_tags_by_model
from safetensors import SafetensorError

from surelabel.encoders.image_inputs.preprocessing import check_preprocess_cfg
from surelabel.encoders.loading.encoder_manifest import read_encoder_json_object
from surelabel.encoders.loading.hub_files import cached_or_downloaded_hub_file
from surelabel.encoders.open_clip.encoder import CONFIG_FILE, WEIGHTS_FILE, OpenClipEncoder
from surelabel.errors import DataError, MissingPart, UnknownName

FOLDER, HUB = "local-dir:", "hf-hub:"
SAFE_SUFFIXES, OTHER_SUFFIXES = (".safetensors", ".pt"), (".bin", ".pth", ".ckpt", ".pkl", ".npz")
LOADING_ERRORS = (  # of open_clip, for damaged weights or another architecture
    SafetensorError,
    pickle.UnpicklingError,
    AssertionError,
    AttributeError,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def load_open_clip_checkpoint_folder(folder: Path, device: str) -> OpenClipEncoder:
    """Load an open_clip model from a folder in the format of open_clip.

    Args:
        folder: Folder with ``open_clip_config.json`` and ``open_clip_model.safetensors``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If a file is missing or damaged, or belongs to another model.
        ConfigError: If a preprocessing setting is missing or invalid.
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
    return _build_open_clip_checkpoint_encoder(
        name, name, _read_open_clip_checkpoint_cfg(config), device
    )


def load_open_clip_checkpoint_from_hub(repository: str, device: str) -> OpenClipEncoder:
    """Load an open_clip model from a repository of the Hugging Face hub.

    Args:
        repository: Name of the repository, ``OWNER/NAME``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If a file is missing or damaged, or cannot be downloaded.
        ConfigError: If a preprocessing setting is missing or invalid.
        MissingPart: If the text tower needs transformers, which is not installed.
    """
    name = f"{HUB}{repository}"
    config = _read_open_clip_checkpoint_cfg(
        cached_or_downloaded_hub_file(repository, CONFIG_FILE, encoder_name=name)
    )
    weights = cached_or_downloaded_hub_file(repository, WEIGHTS_FILE, encoder_name=name)
    folder = f"{FOLDER}{weights.parent}"
    # open_clip downloads a tokenizer of transformers, which can be in another repository.
    tokenizer_source = name if "hf_tokenizer_name" in config["text_cfg"] else folder
    return _build_open_clip_checkpoint_encoder(
        name, folder, config, device, tokenizer_source=tokenizer_source
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
        ConfigError: If a preprocessing setting is missing or invalid.
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
    return _build_open_clip_checkpoint_encoder(
        name, architecture, config, device, weights=weights, preprocess_cfg=cfg
    )


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
    check_preprocess_cfg(cfg, str(cfg_file))
    config = open_clip.get_model_config(architecture)
    return _build_open_clip_checkpoint_encoder(
        name, architecture, config, device, weights=weights, preprocess_cfg=cfg
    )


def _build_open_clip_checkpoint_encoder(
    name: str,
    source: str,
    config: dict[str, Any],
    device: str,
    *,
    weights: Path | None = None,
    preprocess_cfg: dict[str, Any] | None = None,
    tokenizer_source: str | None = None,
) -> OpenClipEncoder:
    """Build the model and the tokenizer with open_clip, and return an encoder."""
    _check_open_clip_checkpoint_packages(name, config)
    try:
        model = open_clip.create_model(
            source,
            pretrained=str(weights) if weights else None,
            force_quick_gelu=bool(config.get("quick_gelu")),
            force_preprocess_cfg=preprocess_cfg,
            require_pretrained=True,
        )
        tokenizer = open_clip.get_tokenizer(tokenizer_source or source)
    except LOADING_ERRORS as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"{name} must contain a tokenizer and all weights of its architecture; loading failed "
            f"({type(error).__name__}: {reason}). Copy the checkpoint again, or convert its "
            "weights to safetensors."
        ) from error
    return OpenClipEncoder(
        model.to(device),
        tokenizer,
        name=name,
        config=config,
        preprocess_cfg=model.visual.preprocess_cfg,
    )


def _check_open_clip_checkpoint_packages(name: str, config: dict[str, Any]) -> None:
    text_cfg = config["text_cfg"]
    is_needed = "hf_model_name" in text_cfg or "hf_tokenizer_name" in text_cfg
    if is_needed and importlib.util.find_spec("transformers") is None:
        raise MissingPart(
            f"The text tower of {name} needs the package transformers, which is not installed. "
            "Run pip install transformers."
        )


def _read_open_clip_checkpoint_cfg(file: Path) -> dict[str, Any]:
    """Check the settings in a configuration file, and return the ``model_cfg``."""
    content = read_encoder_json_object(file)
    config = _require_open_clip_checkpoint_object(content, "model_cfg", file)
    for tower in ("vision_cfg", "text_cfg"):
        _require_open_clip_checkpoint_object(config, tower, file)
    check_preprocess_cfg(content.get("preprocess_cfg", {}), str(file))
    return config


def _require_open_clip_checkpoint_object(
    content: dict[str, Any], key: str, file: Path
) -> dict[str, Any]:
    value = content.get(key)
    if not isinstance(value, dict):
        raise DataError(
            f"{file} must contain {key}, an object that describes the architecture; "
            f"got {value!r}. Copy the file that belongs to the weights."
        )
    return value
