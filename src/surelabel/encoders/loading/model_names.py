"""Load an encoder by model name."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import open_clip
import torch
from open_clip.pretrained import list_pretrained_tags_by_model

from surelabel.encoders.embedded.embedded_encoders import ENCODERS, load_saved_embedded_encoder
from surelabel.encoders.image_only.exported_model import load_saved_exported_model
from surelabel.encoders.image_only.onnx_encoder import load_saved_onnx_encoder, onnx_encoder
from surelabel.encoders.image_only.precomputed_features import (
    load_saved_precomputed_features,
    precomputed_features_of_width,
)
from surelabel.encoders.image_only.precomputed_scores import (
    load_saved_precomputed_scores,
    precomputed_scores_of_kind,
)
from surelabel.encoders.image_only.timm_encoder import load_saved_timm_encoder, timm_encoder
from surelabel.encoders.interface import Encoder
from surelabel.encoders.loading.encoder_manifest import MANIFEST_FILE, read_encoder_json_object
from surelabel.encoders.loading.similar_names import open_clip_name_hint
from surelabel.encoders.open_clip.checkpoints import (
    load_open_clip_checkpoint_by_name,
    load_open_clip_checkpoint_folder,
    load_open_clip_checkpoint_from_hub,
)
from surelabel.encoders.quantized.quantized_encoder import load_saved_quantized_encoder
from surelabel.encoders.transformers.transformers_encoder import (
    load_saved_transformers_encoder,
    transformers_encoder,
)
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.migration import ENCODER_MANIFEST
from surelabel.recognizer_folder_checks import exported_file_of_model
from surelabel.tables import configure_table_entry, table_entry_settings


def load_encoder(name: str, *, device: str = "cpu", **options: Any) -> Encoder:
    """Load a frozen encoder by model name.

    Args:
        name: Model name in one of these forms:
            ``tiny-vit``, ``tiny-rn``: embedded encoder, trained on emoji scenes only.
            ``ARCHITECTURE/PRETRAINED``: architecture and name of pretrained weights in open_clip,
            such as ``ViT-B-16/openai``.
            ``ARCHITECTURE/FILE``: architecture of open_clip with the weights in a ``.safetensors``,
            ``.pt``, ``.pth`` or ``.bin`` file that contains only tensors. A ``.json`` file with the
            name of the weights file, in the same folder, must contain the ``preprocess_cfg`` of the
            weights.
            ``hf-hub:OWNER/NAME``: open_clip model on the Hugging Face hub.
            ``local-dir:FOLDER``: folder of a saved encoder, or folder with
            ``open_clip_config.json``, ``open_clip_model.safetensors`` and the files of the
            tokenizer, if the text tower does not use the tokenizer of CLIP.
            ``onnx:FILE``: image encoder with the settings of :func:`onnx_encoder`.
            ``timm:NAME``: image encoder with the settings of :func:`timm_encoder`.
            ``transformers:FOLDER`` or ``transformers:OWNER/NAME``: dual encoder of transformers in
            a folder or on the Hugging Face hub, see :func:`transformers_encoder`.
            ``features:WIDTH``: placeholder for precomputed features of width ``WIDTH``, with the
            setting of :func:`precomputed_features_of_width`.
            ``scores:KIND``: placeholder for scores that another program computed, with the settings
            of :func:`precomputed_scores_of_kind`.
        device: Name of a torch device, such as ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
        options: Settings of an ``onnx:``, ``timm:``, ``features:`` or ``scores:`` encoder, such as
            ``output="features"``.

    Raises:
        UnknownName: If the architecture or the name of the weights does not exist. The message
            contains the most similar names.
        DataError: If a file is missing or damaged, belongs to another model, or cannot be
            downloaded.
        ConfigError: If a setting or the preprocessing is missing or invalid, the device is not
            available, or the name is the path of an exported file.
        MissingPart: If a required package, such as transformers or onnxruntime, is not installed.

    Example:
        >>> load_encoder("features:1280").width
        1280
    """
    check_encoder_loading_device(device)
    prefix, colon, source = name.partition(":")
    loader = PREFIX_LOADERS.get(prefix) if colon else None
    if options and not (loader and table_entry_settings(loader)):
        raise ConfigError(
            f"{name} accepts no settings; got {options}. Remove the settings; only onnx:FILE, "
            "timm:NAME, features:WIDTH and scores:KIND accept settings."
        )
    if loader:
        encoder: Encoder = configure_table_entry({name: loader}, name, **options)(source, device)
        return encoder
    if name in ENCODERS:
        return ENCODERS[name](device=device)
    if exported_file_of_model(name):
        raise ConfigError(
            f"The encoder must be a model name; got the file {name}. Give onnx:FILE for an image "
            "encoder. A recognizer that `surelabel export` wrote cannot be fitted; give its file "
            "as the model of tag, evaluate, index or calibrate."
        )
    if name.partition("/")[0] not in open_clip.list_models():
        raise UnknownName(_unknown_model_name_message(name))
    return load_open_clip_checkpoint_by_name(name, device)


def check_encoder_loading_device(device: str) -> None:
    """Check that torch can use a device.

    Raises:
        ConfigError: If torch cannot use the device.
    """
    try:
        torch.empty(0, device=device).cpu()  # raises an error for the device meta without values
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            "device must be a device that torch can use on this machine, such as cpu or cuda; "
            f"got {device!r}: {reason}"
        ) from error


def _load_encoder_by_folder_name(path: str, device: str) -> Encoder:
    """Load an encoder from a folder that was written by ``save`` or by open_clip."""
    folder = Path(path).expanduser()
    files = [folder / name for name in (MANIFEST_FILE, ENCODER_MANIFEST)]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return load_open_clip_checkpoint_folder(folder, device)
    manifest = read_encoder_json_object(file)
    kinds = [kind for kind in SAVED_LOADERS if kind in manifest]
    if len(kinds) != 1:
        raise DataError(
            f"{file} must contain exactly one of the keys {', '.join(SAVED_LOADERS)}; "
            f"got {manifest}. Copy the whole folder again, or install the version of surelabel "
            "that wrote the folder."
        )
    encoder = SAVED_LOADERS[kinds[0]](folder, manifest, device)
    stored_fingerprint = " ".join(str(manifest.get("fingerprint")).split())[:60]
    if encoder.fingerprint != stored_fingerprint:
        raise DataError(
            f"The fingerprint in {file} must be {encoder.fingerprint}, as computed for the loaded "
            f"weights of {encoder.name}; got {stored_fingerprint}. Copy the whole folder again, "
            "install the version of surelabel that wrote the folder, or save the encoder again."
        )
    return encoder


def _load_saved_quantized_encoder(folder: Path, manifest: dict[str, Any], device: str) -> Encoder:
    """Load a quantized encoder, whose folder contains the folder of the original encoder."""
    return load_saved_quantized_encoder(
        folder, manifest, device, load_original=_load_encoder_by_folder_name
    )


def _unknown_model_name_message(name: str) -> str:
    hint = open_clip_name_hint(name)
    if hint:
        return f"{name!r} is not the name of an encoder in this package. {hint}".rstrip()
    architecture, slash, tag = name.partition("/")
    known = {model.lower(): model for model in (*ENCODERS, *open_clip.list_models())}
    matches = get_close_matches(architecture.lower(), known, n=3, cutoff=0.4)
    nearest = [known[match] for match in matches]
    hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
    if slash and nearest:
        tags = list_pretrained_tags_by_model(nearest[0])
        similar_tags = get_close_matches(tag.lower(), tags, n=1)
        hint = f" Did you mean {nearest[0]}/{similar_tags[0]}?" if similar_tags else hint
    return (
        f"{architecture!r} is not the name of an encoder.{hint} Use {', '.join(ENCODERS)}, "
        "ARCHITECTURE/PRETRAINED of open_clip (such as ViT-B-16/openai), hf-hub:OWNER/NAME, "
        "local-dir:FOLDER, transformers:FOLDER, timm:NAME, onnx:FILE, features:WIDTH or "
        "scores:KIND."
    )


PREFIX_LOADERS: dict[str, Callable[..., Encoder]] = {  # name:… → loader(…, device, *, settings)
    "features": precomputed_features_of_width,
    "hf-hub": load_open_clip_checkpoint_from_hub,
    "local-dir": _load_encoder_by_folder_name,
    "onnx": onnx_encoder,
    "scores": precomputed_scores_of_kind,
    "timm": timm_encoder,
    "transformers": transformers_encoder,
}
SavedLoader = Callable[[Path, dict[str, Any], str], Encoder]  # folder, manifest, device
SAVED_LOADERS: dict[str, SavedLoader] = {  # kind of a saved encoder: its loader
    "embedded": load_saved_embedded_encoder,
    "exported": load_saved_exported_model,
    "features": load_saved_precomputed_features,
    "onnx": load_saved_onnx_encoder,
    "quantized": _load_saved_quantized_encoder,
    "scores": load_saved_precomputed_scores,
    "timm": load_saved_timm_encoder,
    "transformers": load_saved_transformers_encoder,
}
