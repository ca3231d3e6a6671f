"""Any checkpoint of open_clip: by its name, from a file, from a folder or from the hub."""

import importlib.util
import pickle
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import open_clip
from open_clip.pretrained import get_pretrained_cfg, list_pretrained_tags_by_model
from safetensors import SafetensorError

from surelabel.backbones.hub import hub_file
from surelabel.backbones.kept import read_json
from surelabel.backbones.preparation import check_complete
from surelabel.backbones.towers import CONFIG_FILE, WEIGHTS_FILE, Towers
from surelabel.errors import DataError, MissingPart, UnknownName

FOLDER, HUB = "local-dir:", "hf-hub:"
SAFE_SUFFIXES, OTHER_SUFFIXES = (".safetensors", ".pt"), (".bin", ".pth", ".ckpt", ".pkl", ".npz")
UNREADABLE = (
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


def from_folder(folder: Path, device: str) -> Towers:
    """The model in a folder, as open_clip writes it.

    Raises:
        DataError: a file is missing, damaged, or of another model.
        ConfigError: the preprocessing is not stated.
    """
    config, weights = folder / CONFIG_FILE, folder / WEIGHTS_FILE
    missing = [file.name for file in (config, weights) if not file.is_file()]
    if missing:
        raise DataError(
            f"{folder} must hold {CONFIG_FILE} and {WEIGHTS_FILE}. Missing: {', '.join(missing)}. "
            "Pickle files (.bin, .pth) are not read: convert them to safetensors."
        )
    return _built(f"{FOLDER}{folder}", f"{FOLDER}{folder}", _architecture(config), device)


def from_hub(repository: str, device: str) -> Towers:
    """The model in a repository ``OWNER/NAME`` of the Hugging Face hub.

    Raises:
        DataError: a file is missing, damaged, or cannot be downloaded.
        ConfigError: the preprocessing is not stated.
    """
    name = f"{HUB}{repository}"
    config = _architecture(hub_file(repository, CONFIG_FILE, asked_for=name))
    weights = hub_file(repository, WEIGHTS_FILE, asked_for=name)
    folder = f"{FOLDER}{weights.parent}"
    # A tokenizer of transformers may lie in another repository, from where it is fetched.
    tokenizer_source = name if "hf_tokenizer_name" in config["text_cfg"] else folder
    return _built(name, folder, config, device, tokenizer_source=tokenizer_source)


def from_name(name: str, device: str) -> Towers:
    """``ARCHITECTURE/PRETRAINED`` or ``ARCHITECTURE/FILE``, whose architecture open_clip has.

    Raises:
        UnknownName: no such pretrained weights; the nearest are offered.
        DataError: a file that is missing, damaged, of another model, or cannot be downloaded.
        ConfigError: preprocessing that is not stated.
    """
    architecture, _, weights = name.partition("/")
    if Path(weights).suffix in SAFE_SUFFIXES + OTHER_SUFFIXES:
        return _from_file(name, architecture, Path(weights).expanduser(), device)
    return _from_tag(name, architecture, weights, device)


def _from_tag(name: str, architecture: str, tag: str, device: str) -> Towers:
    settings = get_pretrained_cfg(architecture, tag)
    if not settings:
        tags = list_pretrained_tags_by_model(architecture)
        near = get_close_matches(tag, tags, n=1, cutoff=0.3)
        hint = f" Did you mean {architecture}/{near[0]}?" if near else ""
        raise UnknownName(
            f"{architecture} needs weights with a name, or a file: {architecture}/PRETRAINED. "
            f"Got {name!r}.{hint} Known: {', '.join(tags) or 'none; give a file'}."
        )
    repository, _, stated = settings["hf_hub"].rpartition("/")
    if stated and Path(stated).suffix != ".safetensors":
        raise DataError(
            f"{name} is kept as {stated} of {repository}, a pickle, and reading one runs its "
            f"code. Convert it to safetensors and use {architecture}/FILE.safetensors."
        )
    weights = hub_file(repository, stated or WEIGHTS_FILE, asked_for=name)
    config = open_clip.get_model_config(architecture)
    if settings.get("quick_gelu"):
        config["quick_gelu"] = True  # a matter of the weights; the bare architecture leaves it out
    return _built(name, architecture, config, device, weights=weights, preprocess=settings)


def _from_file(name: str, architecture: str, weights: Path, device: str) -> Towers:
    if weights.suffix not in SAFE_SUFFIXES:
        raise DataError(
            f"Weights are read from .safetensors, or from a .pt that holds tensors only. Got "
            f"{weights}; convert it to safetensors, since reading a pickle runs its code."
        )
    if not weights.is_file():
        raise DataError(f"{name} must name a file of weights. There is no {weights}.")
    beside = weights.with_suffix(".json")
    settings = read_json(beside).get("preprocess_cfg", {}) if beside.is_file() else {}
    check_complete(settings, str(beside))
    config = open_clip.get_model_config(architecture)
    return _built(name, architecture, config, device, weights=weights, preprocess=settings)


def _built(
    name: str,
    source: str,
    config: dict[str, Any],
    device: str,
    *,
    weights: Path | None = None,
    preprocess: dict[str, Any] | None = None,
    tokenizer_source: str | None = None,
) -> Towers:
    """Let open_clip build ``source``, load its weights, and find the tokenizer."""
    _check_transformers(name, config)
    try:
        model = open_clip.create_model(
            source,
            pretrained=str(weights) if weights else None,
            force_quick_gelu=bool(config.get("quick_gelu")),
            force_preprocess_cfg=preprocess,
            require_pretrained=True,
        )
        tokenizer = open_clip.get_tokenizer(tokenizer_source or source)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"{name} must hold whole weights of the architecture it states. They cannot be "
            f"loaded ({type(error).__name__}: {reason}). Copy them again, or convert them to "
            "safetensors of that architecture."
        ) from error
    return Towers(
        model.to(device),
        tokenizer,
        name=name,
        config=config,
        preprocess=model.visual.preprocess_cfg,
    )


def _check_transformers(name: str, config: dict[str, Any]) -> None:
    text = config["text_cfg"]
    wants = "hf_model_name" in text or "hf_tokenizer_name" in text
    if wants and importlib.util.find_spec("transformers") is None:
        raise MissingPart(
            f"{name} reads text with the package transformers, which is not installed. "
            "Install it: pip install transformers."
        )


def _architecture(file: Path) -> dict[str, Any]:
    """``model_cfg`` of a config beside its weights, whose ``preprocess_cfg`` is complete."""
    about = read_json(file)
    config = _object(about, "model_cfg", file)
    for tower in ("vision_cfg", "text_cfg"):
        _object(config, tower, file)
    check_complete(about.get("preprocess_cfg", {}), str(file))
    return config


def _object(about: dict[str, Any], key: str, file: Path) -> dict[str, Any]:
    found = about.get(key)
    if not isinstance(found, dict):
        raise DataError(
            f"{file} must hold {key}, an object that states the architecture. Got {found!r}; copy "
            "the file that belongs to the weights."
        )
    return found
