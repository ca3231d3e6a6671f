"""From the name of a backbone to the backbone."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import open_clip
import torch

from surelabel.backbones.arrays import arrays, saved_arrays
from surelabel.backbones.checkpoints import from_folder, from_hub, from_name
from surelabel.backbones.embedded import BACKBONES, saved_embedded
from surelabel.backbones.kept import KEPT_FILE, read_json
from surelabel.backbones.onnx import onnx_encoder, saved_onnx
from surelabel.backbones.protocol import Backbone
from surelabel.backbones.timm import saved_timm, timm_encoder
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.tables import choose, settings


def load_backbone(name: str, *, device: str = "cpu", **chosen: Any) -> Backbone:
    """Load a frozen encoder by its name.

    Args:
        name: One of these:
            ``tiny-vit``, ``tiny-rn``: inside the package; emoji are all they know.
            ``ARCHITECTURE/PRETRAINED``: names of open_clip, such as ``ViT-B-16/openai``.
            ``ARCHITECTURE/FILE``: weights in a ``.safetensors`` or ``.pt`` file; a ``.json`` of
            the same name beside it holds their ``preprocess_cfg``.
            ``hf-hub:OWNER/NAME``: an open_clip model, in safetensors, on the Hugging Face hub.
            ``local-dir:FOLDER``: what an encoder saved, or ``open_clip_config.json`` and
            ``open_clip_model.safetensors``.
            ``onnx:FILE``: pictures only; :func:`onnx_encoder` has its settings.
            ``timm:NAME``: pictures only; :func:`timm_encoder` has its settings.
            ``features:WIDTH``: ready-made vectors of that length in place of pictures.
        device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        chosen: Settings of ``onnx:`` and ``timm:``, such as ``output="features"``.

    Raises:
        UnknownName: no such architecture or pretrained name; the nearest are offered.
        DataError: a file that is missing, damaged, of another model, or cannot be downloaded.
        ConfigError: a setting or preprocessing that is not stated or does not fit, a device that
            is not there.
        MissingPart: a package that is not installed: transformers, onnxruntime.

    Example:
        >>> load_backbone("features:1280").width
        1280
    """
    check_device(device)
    kind, colon, rest = name.partition(":")
    make = KINDS.get(kind) if colon else None
    if chosen and not (make and settings(make)):
        raise ConfigError(f"{name} has no settings; onnx:FILE and timm:NAME have. Got {chosen}.")
    if make:
        backbone: Backbone = choose({name: make}, name, **chosen)(rest, device)
        return backbone
    if name in BACKBONES:
        return BACKBONES[name](device=device)
    if name.partition("/")[0] not in open_clip.list_models():
        raise UnknownName(_no_backbone(name))
    return from_name(name, device)


def check_device(device: str) -> None:
    """Refuse a device that torch does not have here.

    Raises:
        ConfigError: the name means nothing, or there is no such device on this machine.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"device must be one that torch finds here, such as cpu, cuda or mps. "
            f"Got {device!r}: {reason}"
        ) from error


def _from_folder(place: str, device: str) -> Backbone:
    """What any kind of encoder saved, or what open_clip writes."""
    folder = Path(place).expanduser()
    if not (folder / KEPT_FILE).is_file():
        return from_folder(folder, device)
    about = read_json(folder / KEPT_FILE)
    kinds = [kind for kind in KEPT if kind in about]
    if len(kinds) != 1:
        raise DataError(
            f"{folder / KEPT_FILE} must name one encoder, as {', '.join(KEPT)}. Got {about}; copy "
            "the whole folder again, or install the version of surelabel that made it."
        )
    made = KEPT[kinds[0]](folder, about, device)
    if made.fingerprint != about.get("fingerprint"):
        raise DataError(
            f"{folder / KEPT_FILE} was made with weights {about.get('fingerprint')} of "
            f"{made.name}, but this version of surelabel finds {made.fingerprint}. Copy the whole "
            "folder again, install the version that made it, or make it again."
        )
    return made


def _no_backbone(name: str) -> str:
    architecture = name.partition("/")[0]
    known = [*BACKBONES, *open_clip.list_models()]
    near = get_close_matches(architecture, known, n=3, cutoff=0.4)
    hint = f" Nearest: {', '.join(near)}." if near else ""
    return (
        f"{architecture!r} is no backbone.{hint} Use {', '.join(BACKBONES)}, "
        "ARCHITECTURE/PRETRAINED of open_clip (such as ViT-B-16/openai), hf-hub:OWNER/NAME, "
        "local-dir:FOLDER, timm:NAME, onnx:FILE or features:WIDTH."
    )


KINDS: dict[str, Callable[..., Backbone]] = {  # name:… → loader(…, device, *, settings)
    "features": arrays,
    "hf-hub": from_hub,
    "local-dir": _from_folder,
    "onnx": onnx_encoder,
    "timm": timm_encoder,
}
KEPT: dict[str, Callable[[Path, dict[str, Any], str], Backbone]] = {  # kinds of saved encoders
    "embedded": saved_embedded,
    "features": saved_arrays,
    "onnx": saved_onnx,
    "timm": saved_timm,
}
