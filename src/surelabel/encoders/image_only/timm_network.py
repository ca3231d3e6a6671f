"""Load networks of timm with weights from the hub, with weights from a file, or random weights."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import timm
import torch
from timm.data.config import resolve_model_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor, nn

from surelabel.array_files import read_safetensors
from surelabel.encoders.loading.hub_files import cached_or_downloaded_hub_file
from surelabel.errors import ConfigError, DataError, UnknownName
from surelabel.records import EncoderLicense

WEIGHTS_FILE = "model.safetensors"
MAX_GROWTH = 2  # values of a network per stored value; position embeddings can be interpolated
TIMM_ERRORS = (  # raised for weights or image sizes that do not match the network
    AssertionError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)


def timm_network_pretrained_cfg(architecture: str) -> Any:
    """Return the pretrained configuration of an architecture in timm.

    The configuration contains the URL of the weights and the preprocessing settings.
    """
    return get_pretrained_cfg(architecture, allow_unregistered=False)


def check_timm_network_architecture(architecture: str) -> None:
    """Check that timm contains an architecture and the tag of its weights.

    Args:
        architecture: Name of the architecture, with or without a tag, such as ``resnet50`` or
            ``resnet50.a1_in1k``.

    Raises:
        UnknownName: If timm does not contain the architecture or the tag. The message contains the
            most similar names.
    """
    try:
        timm_network_pretrained_cfg(architecture)
    except RuntimeError as error:
        bare = architecture.partition(".")[0]
        nearest = timm.list_pretrained(f"{bare}.*") if timm.is_model(bare) else []
        nearest = nearest or get_close_matches(architecture, timm.list_models(), n=3, cutoff=0.4)
        raise UnknownName(
            f"timm {timm.__version__} has no network {architecture!r}. "
            f"Nearest: {', '.join(nearest) or 'none'}."
        ) from error


def random_timm_network(architecture: str, seed: int) -> nn.Module:
    """Return a timm network without a classifier, with random weights.

    The state of the global random number generator does not change.

    Args:
        architecture: Name of the architecture in timm.
        seed: Seed of the random weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: nn.Module = timm.create_model(architecture, pretrained=False, num_classes=0)
    return network


def load_timm_network(architecture: str, weights: Path, name: str) -> nn.Module:
    """Return a timm network without a classifier, with the weights in a file.

    Args:
        architecture: Name of the architecture in timm.
        weights: Path of a ``.safetensors`` file with weights of ``architecture``, with or without
            a classifier.
        name: Name of the encoder, for error messages.

    Raises:
        DataError: If the file is missing or damaged, or belongs to another network.
    """
    state = read_timm_network_weights(weights, name)
    n_classes = _count_timm_network_classes(
        state, timm_network_pretrained_cfg(architecture).classifier
    )
    overlay = {"state_dict": state, "num_classes": n_classes, "custom_load": False}
    try:  # with the classifier of the file, so that timm detects missing and unexpected keys
        model: Any = timm.create_model(
            architecture, pretrained=True, pretrained_cfg_overlay=overlay, num_classes=n_classes
        )
        model.reset_classifier(0)
    except TIMM_ERRORS as error:
        raise timm_network_weights_mismatch_error(weights, name, error) from error
    network: nn.Module = model
    return network


def timm_network_license(architecture: str) -> EncoderLicense:
    """Return the license of the pretrained weights of an architecture, as timm states it."""
    name = timm_network_pretrained_cfg(architecture).license
    return EncoderLicense(name, "timm") if name else EncoderLicense()


def timm_network_hub_weights_file(architecture: str, name: str) -> Path:
    """Return the local path of pretrained weights of timm from the Hugging Face hub.

    Args:
        architecture: Name of the architecture in timm.
        name: Name of the encoder, for error messages.

    Raises:
        DataError: If the hub has no safetensors weights, or the weights cannot be downloaded.
    """
    cfg = timm_network_pretrained_cfg(architecture)
    file = cfg.hf_hub_filename or WEIGHTS_FILE
    remedy = (
        "Set encoder.weights=FILE to a downloaded file, or set encoder.pretrained=false to start "
        "with random weights."
    )
    if not cfg.hf_hub_id or Path(file).suffix != ".safetensors":
        raise DataError(
            f"{name} needs safetensors weights, which the hub does not contain. {remedy}"
        )
    return cached_or_downloaded_hub_file(cfg.hf_hub_id, file, encoder_name=name, remedy=remedy)


def timm_network_data_config(network: nn.Module) -> dict[str, Any]:
    """Return the preprocessing settings of a timm network, such as ``input_size`` and ``mean``."""
    config: dict[str, Any] = resolve_model_data_config(network)  # type: ignore[no-untyped-call]
    return config


def read_timm_network_weights(weights: Path, name: str) -> dict[str, Tensor]:
    """Return the weights of a timm network from a safetensors file.

    Args:
        weights: Path of the safetensors file.
        name: Name of the encoder, for error messages.

    Raises:
        DataError: If the file is missing, damaged, empty, or not a safetensors file.
    """
    if weights.suffix != ".safetensors":
        raise DataError(
            f"Weights of {name} must be a .safetensors file; got {weights}. Convert the file to "
            "safetensors, because loading a pickle can run malicious code."
        )
    state: dict[str, Tensor] = read_safetensors(weights, "pt")
    if not state:  # timm would load other weights
        raise DataError(
            f"{weights} must contain the weights of {name}; the file is empty. Copy the file again."
        )
    return state


def check_timm_network_value_count(
    architecture: str, state: Mapping[str, Tensor], weights: Path, name: str
) -> None:
    """Check that a file has about as many values as a timm network, before memory is allocated.

    Args:
        architecture: Name of the architecture in timm.
        state: Weights in the file.
        weights: Path of the file, for error messages.
        name: Name of the encoder, for error messages.

    Raises:
        DataError: If the network has more than ``MAX_GROWTH`` times as many values as the file.
    """
    with torch.device("meta"):
        network: nn.Module = timm.create_model(architecture, pretrained=False, num_classes=0)
    n_values = sum(tensor.numel() for tensor in network.state_dict().values())
    n_stored = sum(tensor.numel() for tensor in state.values())
    if n_values > MAX_GROWTH * n_stored:
        raise DataError(
            f"{weights} must contain all weights of {name}, {n_values} values; got {n_stored} "
            "values. Use the architecture of these weights."
        )


def timm_network_weights_mismatch_error(weights: Path, name: str, error: Exception) -> DataError:
    """Return the error for a weights file that belongs to another architecture."""
    reason = " ".join(str(error).split())[:300]
    return DataError(
        f"{weights} must contain all weights of {name}; the weights do not match "
        f"({type(error).__name__}: {reason}). Use the architecture of these weights."
    )


def set_timm_network_input_size(network: Any, size: list[int], name: str) -> None:
    """Set the image size of a timm network in place.

    Networks without a fixed image size, such as convolutional networks, do not change.

    Args:
        network: Network of timm, which is modified.
        size: Height and width of the images, in pixels.
        name: Name of the encoder, for error messages.

    Raises:
        ConfigError: If the network does not support the image size.
    """
    try:
        if hasattr(network, "set_input_size"):
            network.set_input_size(img_size=tuple(size))
    except TIMM_ERRORS as error:
        raise _timm_network_image_size_error(name, size, error) from error


def timm_network_output_width(network: nn.Module, size: list[int], name: str) -> int:
    """Return the width of the output vectors of a timm network, measured with one blank image.

    Args:
        network: Network of timm.
        size: Height and width of the images, in pixels.
        name: Name of the encoder, for error messages.

    Raises:
        ConfigError: If the network does not support the image size, or does not return one vector
            per image.
    """
    device = next(network.parameters()).device
    try:
        with torch.no_grad():
            vectors = network(torch.zeros(1, 3, *size, device=device))
    except TIMM_ERRORS as error:
        raise _timm_network_image_size_error(name, size, error) from error
    if not isinstance(vectors, Tensor) or vectors.ndim != 2:
        raise ConfigError(
            f"{name} must compute one vector per image; got "
            f"{tuple(getattr(vectors, 'shape', ())) or type(vectors).__name__}. Use a network "
            "with a pooling layer."
        )
    return int(vectors.shape[1])


def _count_timm_network_classes(state: dict[str, Tensor], classifiers: Any) -> int:
    """Return the number of classes of the classifier, or 0 if there is no classifier."""
    names = [classifiers] if isinstance(classifiers, str) else classifiers or []
    heads = [state[f"{head}.weight"] for head in names if f"{head}.weight" in state]
    return len(heads[0]) if heads else 0


def _timm_network_image_size_error(name: str, size: list[int], error: Exception) -> ConfigError:
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return ConfigError(
        f"{name} does not support images of {size[0]} by {size[1]} pixels ({reason}). Remove "
        "encoder.size to use the image size of the pretraining."
    )
