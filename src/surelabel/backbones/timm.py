"""Any network of timm as an encoder. It knows pictures only, and can be trained."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from surelabel.backbones.fingerprint import fingerprint
from surelabel.backbones.kept import kept_settings, write_about
from surelabel.backbones.pictures_only import PicturesOnly
from surelabel.backbones.preparation import CHOICES, LARGEST_SIDE, Preparation, check_complete
from surelabel.backbones.protocol import Backbone
from surelabel.backbones.timm_network import (
    HUB_FILE,
    another_network,
    check_known,
    data_config,
    hub_weights,
    random_network,
    read_state,
    resize,
    trained_network,
    width,
)
from surelabel.backbones.trained import fine_tuned, load_trained
from surelabel.backbones.trunk import timm_tokens, trunk_features, trunk_width
from surelabel.errors import ConfigError
from surelabel.files import new_folder
from surelabel.records import Features


class TimmEncoder(PicturesOnly):
    """A frozen network of timm without its classifier; its pooled vectors are the features.

    Args:
        model: The network. It is put into evaluation and its parameters are frozen.
        name: As it was asked for.
        architecture: As timm names it, with or without the tag of its weights.
        prepare: From a picture to ``(3, h, w)``.
    """

    def __init__(self, model: nn.Module, *, name: str, architecture: str, prepare: Preparation):
        super().__init__(name, prepare)
        self.model = model.eval().requires_grad_(False)
        self.architecture = architecture
        self.device = next(model.parameters()).device
        self.fingerprint = fingerprint(
            model.state_dict(), config={"timm": architecture}, preprocess=self.preprocess
        )
        self.width = width(self.model, self.preprocess["size"], name)

    @torch.no_grad()
    def images(self, pixels: Tensor) -> Features:
        """``pooled`` unit vectors of prepared pictures ``(n, 3, h, w)``; nothing else."""
        seen = self.model(self.prepare.checked(pixels).to(self.device))
        return Features(pooled=F.normalize(seen, dim=-1))

    @torch.no_grad()
    def trunk(self, pixels: Tensor) -> Features:
        """``pooled``, and in ``layers[-1]`` the last map, or the tokens after the closing norm.

        Raises:
            ConfigError: this kind of network has no grid of tokens.
        """
        network: Any = self.model
        last = network.forward_features(self.prepare.checked(pixels).to(self.device))
        return trunk_features(network.forward_head(last), timm_tokens(network, last), network)

    @property
    def trunk_width(self) -> int:
        """Size ``w`` of the tokens of the trunk, found with one blank picture.

        Raises:
            ConfigError: this kind of network has no grid of tokens.
        """
        return trunk_width(self.trunk(torch.zeros(1, 3, *self.preprocess["size"])))

    def gives(self, part: str) -> bool:
        """Whether it gives ``trunk``; there is no joint space for patches."""
        try:
            return part == "trunk" and self.trunk_width > 0
        except ConfigError:
            return False

    def network(self) -> nn.Module:
        """A copy of the network that can be trained, ``(n, 3, h, w)`` to ``(n, d)``.

        Its vectors are not yet unit vectors; ``images`` gives theirs. It is in evaluation and all
        its parameters take gradients; the frozen encoder is untouched by what becomes of it.
        """
        return copy.deepcopy(self.model).requires_grad_(True)

    def with_network(self, network: nn.Module) -> Backbone:
        """The same encoder with a trained copy of ``network()``.

        Raises:
            InputError: ``network`` is no copy of this network.
        """
        model = copy.deepcopy(self.model)
        load_trained(model, network, self.name)
        name = fine_tuned(self.name)
        return TimmEncoder(model, name=name, architecture=self.architecture, prepare=self.prepare)

    def save(self, folder: Path) -> None:
        """Write weights and settings; ``local-dir:`` loads them again.

        Raises:
            DataError: the folder cannot be written.
        """
        settings = {k: self.preprocess[k] for k in ("size", "resize_mode")}
        with new_folder(folder) as new:
            state = self.model.state_dict()
            save_file({k: v.cpu().clone().contiguous() for k, v in state.items()}, new / HUB_FILE)
            about = {"name": self.name, "settings": settings}
            write_about(new, "timm", self.architecture, self.fingerprint, **about)


def timm_encoder(
    architecture: str,
    device: str,
    *,
    pretrained: bool = True,
    weights: str = "",
    size: int = 0,
    resize_mode: str = "shortest",
    seed: int = 0,
) -> TimmEncoder:
    """A network of timm as an encoder of pictures.

    Args:
        architecture: As timm names it, such as ``resnet50`` or ``resnet50.a1_in1k``.
        device: Where it runs.
        pretrained: False draws random weights, which see nothing before they are trained.
        weights: A ``.safetensors`` file of this architecture, with its classifier or without, in
            place of those on the Hugging Face hub.
        size: Side of the pictures in pixels; 0 takes the one that the weights were made for.
        resize_mode: ``shortest`` (its middle is seen), ``longest`` (with margins) or ``squash``.
        seed: Of random weights.

    Raises:
        UnknownName: timm has no such architecture, or no such weights of it.
        DataError: the weights are not here and cannot be downloaded, or are of another network.
        ConfigError: the network does not take pictures of that size.

    Source:
        Wightman, PyTorch Image Models, https://github.com/huggingface/pytorch-image-models.

    Differs:
        The whole shorter side is seen. timm cuts 5 to 12 % off before it classifies, where a
        small thing may lie.
    """
    name = f"timm:{architecture}"
    check_known(architecture)
    if weights or pretrained:
        file = Path(weights).expanduser() if weights else hub_weights(architecture, name)
        network = trained_network(architecture, file, name)
    else:
        network = random_network(architecture, seed)
    return _encoder(network, architecture, device, size=size, resize_mode=resize_mode)


def saved_timm(folder: Path, about: Mapping[str, Any], device: str) -> TimmEncoder:
    """The encoder that ``save`` wrote into a folder.

    Raises:
        DataError: its weights are missing, damaged, or of another network.
        UnknownName: this version of timm has no such architecture.
    """
    architecture, name = str(about["timm"]), f"timm:{about['timm']}"
    check_known(architecture)
    settings = kept_settings(timm_encoder, about, folder)
    size, resize_mode = settings.get("size", 0), settings.get("resize_mode", "shortest")
    network = random_network(architecture, seed=0)
    resize(network, _preprocess(network, name, size, resize_mode)["size"], name)
    file = folder / HUB_FILE
    try:
        network.load_state_dict(read_state(file, name))
    except RuntimeError as error:
        raise another_network(file, name, error) from error
    made = _encoder(network, architecture, device, size=size, resize_mode=resize_mode)
    made.name = str(about.get("name", name))  # may say that it is fine-tuned
    return made


def _encoder(
    network: nn.Module, architecture: str, device: str, *, size: Any, resize_mode: str
) -> TimmEncoder:
    name = f"timm:{architecture}"
    prepare = Preparation(_preprocess(network, name, size, resize_mode))
    resize(network, prepare.settings["size"], name)
    return TimmEncoder(network.to(device), name=name, architecture=architecture, prepare=prepare)


def _preprocess(network: nn.Module, name: str, size: Any, resize_mode: str) -> dict[str, Any]:
    """How timm prepares pictures for these weights, at another size where one is stated."""
    stated = data_config(network)
    sides = size if isinstance(size, list) else [size, size] if size else stated["input_size"][1:]
    if len(sides) != 2 or not all(type(s) is int and 1 <= s <= LARGEST_SIDE for s in sides):
        raise ConfigError(
            f"size must be the side of the pictures in pixels, 1 to {LARGEST_SIDE}, or 0 for the "
            f"one {name} was made for. Got {size!r}."
        )
    bicubic = stated["interpolation"] not in CHOICES["interpolation"]
    preprocess = {
        "size": list(sides),
        "mean": stated["mean"],
        "std": stated["std"],
        "interpolation": "bicubic" if bicubic else stated["interpolation"],
        "resize_mode": resize_mode,
    }
    check_complete(preprocess, name)
    return preprocess
