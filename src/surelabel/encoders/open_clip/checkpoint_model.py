"""Build an open_clip model from checked settings, and load its weights without pickle code."""

import copy
import pickle
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import open_clip
import torch
from safetensors import SafetensorError
from torch import nn

from surelabel.array_files import open_safetensors
from surelabel.encoders.open_clip.architecture_settings import check_open_clip_architecture_settings
from surelabel.encoders.open_clip.hugging_face_texts import hugging_face_text_config_folder
from surelabel.errors import DataError
from surelabel.file_readers import check_regular_file

MAX_GROWTH = 2  # values of a model per stored value; position embeddings can be interpolated
LOADING_ERRORS = (  # raised by open_clip for damaged weights or another architecture
    SafetensorError,
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,  # for optional packages that transformers imports
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    StopIteration,  # for a file without weights
    TypeError,
    ValueError,
)


def load_open_clip_checkpoint_model(
    name: str, model_cfg: Mapping[str, Any], weights: Path, text_config: Path | None
) -> nn.Module:
    """Build the model of a checkpoint, and load its weights.

    The settings are the argument of the constructor, so that open_clip reads no other file. Before
    memory is allocated, the number of values of the model is compared with the number of stored
    values.

    Args:
        name: Model name of the encoder, for error messages.
        model_cfg: Settings of the architecture, the ``model_cfg`` of open_clip.
        weights: ``.safetensors`` file, or a pickle (``.pt``, ``.pth`` or ``.bin``) that contains
            only tensors. A pickle is read with ``torch.load(weights_only=True)``.
        text_config: Configuration of a text tower from the package ``transformers``. If None, the
            model has no text tower from this package.

    Raises:
        ConfigError: If a setting is not accepted.
        DataError: If the weights are damaged, or belong to another architecture.
    """
    check_open_clip_architecture_settings(model_cfg, name)
    n_stored = _count_stored_checkpoint_values(weights)
    with hugging_face_text_config_folder(text_config) if text_config else nullcontext() as folder:
        try:
            with torch.device("meta"):
                n_values = _count_model_values(_build_open_clip_model(model_cfg, folder))
            if n_values <= MAX_GROWTH * n_stored:
                model = _build_open_clip_model(model_cfg, folder)
                open_clip.load_checkpoint(model, str(weights), weights_only=True)
                return model
        except LOADING_ERRORS as error:
            raise _open_clip_weights_error(name, weights, error) from error
    raise DataError(
        f"{name} must contain all weights of its architecture, {n_values} values; {weights} has "
        f"{n_stored} values. Use the architecture of these weights."
    )


def _open_clip_weights_error(name: str, weights: Path, error: Exception) -> DataError:
    """Return the error for weights that open_clip cannot load."""
    reason = " ".join(str(error).split())[:300]
    if "weights_only" in str(error):  # the advice of PyTorch would run the code of the file
        unsupported = re.search(r"(?:GLOBAL|class) ([\w.]+)", str(error))
        objects = f" ({unsupported.group(1)})" if unsupported else ""
        return DataError(
            f"{weights} must contain only tensors; got other objects{objects}. Such objects are "
            "not loaded, because they can run malicious code. If you trust the source of the file, "
            f"convert the file once: {_safetensors_conversion_command(weights)} Then load the new "
            "file as ARCHITECTURE/FILE.safetensors, or with local-dir:FOLDER."
        )
    return DataError(
        f"{name} must contain all weights of its architecture; loading {weights.name} failed "
        f"({type(error).__name__}: {reason}). Copy the checkpoint again, or use the architecture "
        "of these weights."
    )


def _safetensors_conversion_command(weights: Path) -> str:
    """Return the command that converts a pickle of weights to a safetensors file beside it."""
    return (
        'python -c "import torch, safetensors.torch; '
        f"d = torch.load({str(weights)!r}, map_location='cpu', weights_only=False); "
        "d = d.state_dict() if hasattr(d, 'state_dict') else d.get('state_dict', d); "
        "safetensors.torch.save_file({k: v.clone().contiguous() for k, v in d.items() if "
        f'torch.is_tensor(v)}}, {str(weights.with_suffix(".safetensors"))!r})".'
    )


def _build_open_clip_model(model_cfg: Mapping[str, Any], text_folder: str | None) -> nn.Module:
    """Build a model without its weights and without downloads."""
    settings: dict[str, Any] = copy.deepcopy(dict(model_cfg))
    vision_cfg, text_cfg = settings["vision_cfg"], settings["text_cfg"]
    has_own_text_tower = settings.pop("custom_text", False) or "hf_model_name" in text_cfg
    vision_cfg["timm_model_pretrained"] = text_cfg["hf_model_pretrained"] = False
    if text_folder:
        text_cfg["hf_model_name"] = text_folder
    model_class: Callable[..., nn.Module] = open_clip.CLIP
    if has_own_text_tower:
        is_coca = "multimodal_cfg" in settings
        model_class = open_clip.CoCa if is_coca else open_clip.CustomTextCLIP
    return model_class(**settings)


def _count_model_values(model: nn.Module) -> int:
    return sum(tensor.numel() for tensor in model.state_dict().values())


def _count_stored_checkpoint_values(weights: Path) -> int:
    """Return the number of values in a file of weights, or an upper limit for a pickle.

    Raises:
        DataError: If the file is not a regular file, or its header is damaged.
    """
    check_regular_file(weights)
    if weights.suffix != ".safetensors":
        return weights.stat().st_size
    with open_safetensors(weights, "pt") as stored:
        shapes = [stored.get_slice(key).get_shape() for key in stored.keys()]  # noqa: SIM118
    return sum(torch.Size(shape).numel() for shape in shapes)
