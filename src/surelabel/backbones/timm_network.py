"""A network of timm with weights from the hub, from a file, or drawn at random."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from timm.data.config import resolve_model_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor, nn

from surelabel.backbones.hub import hub_file
from surelabel.errors import ConfigError, DataError, UnknownName

HUB_FILE = "model.safetensors"
UNFIT = (
    AssertionError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)  # of timm, for other weights


def settings_of(architecture: str) -> Any:
    """What timm knows of the weights: where they are, and how pictures are prepared for them."""
    return get_pretrained_cfg(architecture, allow_unregistered=False)


def check_known(architecture: str) -> None:
    """Refuse what timm does not have.

    Raises:
        UnknownName: no such architecture, or no such weights of it; the nearest are offered.
    """
    try:
        settings_of(architecture)
    except RuntimeError as error:
        bare = architecture.partition(".")[0]
        near = timm.list_pretrained(f"{bare}.*") if timm.is_model(bare) else []
        near = near or get_close_matches(architecture, timm.list_models(), n=3, cutoff=0.4)
        raise UnknownName(
            f"timm {timm.__version__} has no network {architecture!r}. "
            f"Nearest: {', '.join(near) or 'none'}."
        ) from error


def random_network(architecture: str, seed: int) -> nn.Module:
    """Without its classifier, with weights drawn from ``seed``; no other draw is touched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made: nn.Module = timm.create_model(architecture, pretrained=False, num_classes=0)
    return made


def trained_network(architecture: str, weights: Path, name: str) -> nn.Module:
    """Without its classifier, with weights from a file that may hold one.

    Args:
        architecture: As timm names it.
        weights: A ``.safetensors`` file of it.
        name: Of the encoder, for messages.

    Raises:
        DataError: the file is missing, damaged, or of another network.
    """
    state = read_state(weights, name)
    classes = _classes(state, settings_of(architecture).classifier)
    overlay = {"state_dict": state, "num_classes": classes, "custom_load": False}
    try:  # with the classifier of the file, so that timm refuses what is missing or too much
        made: Any = timm.create_model(
            architecture, pretrained=True, pretrained_cfg_overlay=overlay, num_classes=classes
        )
        made.reset_classifier(0)
    except UNFIT as error:
        raise another_network(weights, name, error) from error
    network: nn.Module = made
    return network


def hub_weights(architecture: str, name: str) -> Path:
    """The file with the weights that timm names, from the hub or its cache on this disk.

    Raises:
        DataError: there are none, or they are not here and cannot be downloaded.
    """
    settings = settings_of(architecture)
    file = settings.hf_hub_filename or HUB_FILE
    instead = (
        "Where there is a network, download it, bring it here and set backbone.weights=FILE; or "
        "start from random weights and train them: backbone.pretrained=false."
    )
    if not settings.hf_hub_id or Path(file).suffix != ".safetensors":
        raise DataError(f"{name} has no weights in safetensors on the hub. {instead}")
    return hub_file(settings.hf_hub_id, file, asked_for=name, instead=instead)


def data_config(network: nn.Module) -> dict[str, Any]:
    """How timm prepares pictures for the weights: ``input_size``, ``mean``, ``std`` and so on."""
    found: dict[str, Any] = resolve_model_data_config(network)  # type: ignore[no-untyped-call]
    return found


def read_state(weights: Path, name: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    Raises:
        DataError: it is no such file.
    """
    if weights.suffix != ".safetensors":
        raise DataError(
            f"{name} reads weights from .safetensors. Got {weights}; convert it, since reading a "
            "pickle runs its code."
        )
    try:
        state: dict[str, Tensor] = load_file(weights)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{weights} cannot be read: {error}. Copy it again.") from error
    if not state:  # timm would go and look for others
        raise DataError(f"{weights} must hold the weights of {name}. It holds none.")
    return state


def another_network(weights: Path, name: str, error: Exception) -> DataError:
    """What is said when weights do not fit."""
    reason = " ".join(str(error).split())[:300]
    return DataError(
        f"{weights} must hold whole weights of {name}. They do not fit "
        f"({type(error).__name__}: {reason}). Name the architecture they belong to."
    )


def resize(network: Any, size: list[int], name: str) -> None:
    """Let the network take pictures of ``size`` down and across; convolutions take any.

    Raises:
        ConfigError: it does not.
    """
    try:
        if hasattr(network, "set_input_size"):
            network.set_input_size(img_size=tuple(size))
    except UNFIT as error:
        raise _unfit_size(name, size, error) from error


def width(network: nn.Module, size: list[int], name: str) -> int:
    """Length of the vectors that the network gives, found with one blank picture.

    Raises:
        ConfigError: it takes no such picture, or gives no vector.
    """
    device = next(network.parameters()).device
    try:
        with torch.no_grad():
            seen = network(torch.zeros(1, 3, *size, device=device))
    except UNFIT as error:
        raise _unfit_size(name, size, error) from error
    if not isinstance(seen, Tensor) or seen.ndim != 2:
        raise ConfigError(
            f"{name} must give one vector a picture. It gives "
            f"{tuple(getattr(seen, 'shape', ())) or type(seen).__name__}; take a network that "
            "pools its features."
        )
    return int(seen.shape[1])


def _classes(state: dict[str, Tensor], classifiers: Any) -> int:
    """How many classes the weights tell apart; 0 without a classifier."""
    names = [classifiers] if isinstance(classifiers, str) else classifiers or []
    heads = [state[f"{head}.weight"] for head in names if f"{head}.weight" in state]
    return len(heads[0]) if heads else 0


def _unfit_size(name: str, size: list[int], error: Exception) -> ConfigError:
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return ConfigError(
        f"{name} does not take pictures of {size[0]} by {size[1]} pixels ({reason}). Leave "
        "backbone.size out for the size it was made for."
    )
