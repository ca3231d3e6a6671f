"""Networks of timm as encoders of images, which can be fine-tuned."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from surelabel.encoders.image_inputs.preprocessing import (
    ALLOWED_VALUES,
    MAX_SIDE,
    ImagePreprocessor,
    check_preprocess_cfg,
)
from surelabel.encoders.image_only.image_only import ImageOnlyEncoder
from surelabel.encoders.image_only.timm_network import (
    WEIGHTS_FILE,
    check_timm_architecture,
    hub_weights_file,
    load_timm_network,
    random_timm_network,
    read_safetensors,
    set_timm_input_size,
    timm_data_config,
    timm_output_width,
    weights_mismatch_error,
)
from surelabel.encoders.interface import Encoder
from surelabel.encoders.loading.encoder_manifest import manifest_settings, write_manifest
from surelabel.encoders.loading.finetuned_weights import finetuned_name, load_finetuned_weights
from surelabel.encoders.loading.weights_fingerprint import weights_fingerprint
from surelabel.encoders.towers.trunk import (
    timm_tokens,
    trunk_features_from_tokens,
    trunk_token_width,
)
from surelabel.errors import ConfigError
from surelabel.files import atomic_folder
from surelabel.records import Features


class TimmEncoder(ImageOnlyEncoder):
    """A frozen network of timm without its classifier; its pooled vectors are the features.

    Args:
        model: Network of timm. It is set to evaluation mode, and its parameters are frozen.
        name: Name that the encoder was loaded by.
        architecture: Name of the architecture in timm, with or without the tag of its weights.
        preprocess: Preprocessing of an image to ``(3, h, w)``.
    """

    def __init__(
        self, model: nn.Module, *, name: str, architecture: str, preprocess: ImagePreprocessor
    ):
        super().__init__(name, preprocess)
        self.model = model.eval().requires_grad_(False)
        self.architecture = architecture
        self.device = next(model.parameters()).device
        self.fingerprint = weights_fingerprint(
            model.state_dict(), config={"timm": architecture}, preprocess_cfg=self.preprocess_cfg
        )
        self.width = timm_output_width(self.model, self.preprocess_cfg["size"], name)

    @torch.no_grad()
    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``."""
        vectors = self.model(self.preprocess.check_pixels(pixels).to(self.device))
        return Features(pooled=F.normalize(vectors, dim=-1))

    @torch.no_grad()
    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and in ``layers[-1]`` the tokens before pooling, ``(n, p, w)``.

        The tokens are the last feature map, or the output of the final norm of a transformer.

        Raises:
            ConfigError: If the network has no grid of tokens.
        """
        network: Any = self.model
        last = network.forward_features(self.preprocess.check_pixels(pixels).to(self.device))
        return trunk_features_from_tokens(
            network.forward_head(last), timm_tokens(network, last), network
        )

    @property
    def trunk_width(self) -> int:
        """Return the width ``w`` of the trunk tokens, measured with one blank image.

        Raises:
            ConfigError: If the network has no grid of tokens.
        """
        return trunk_token_width(
            self.encode_trunk_tokens(torch.zeros(1, 3, *self.preprocess_cfg["size"]))
        )

    def supports(self, kind: str) -> bool:
        """Return True for ``trunk`` if there is a grid of tokens, and False for other kinds."""
        try:
            return kind == "trunk" and self.trunk_width > 0
        except ConfigError:
            return False

    def trainable_network(self) -> nn.Module:
        """Return a trainable copy of the network, ``(n, 3, h, w)`` to ``(n, d)``.

        Its output is not normalized. The copy is in evaluation mode, all its parameters require
        gradients, and training it does not change this encoder.
        """
        return copy.deepcopy(self.model).requires_grad_(True)

    def with_network(self, network: nn.Module) -> Encoder:
        """Return this encoder with a trained copy of ``trainable_network()``.

        Raises:
            InputError: If ``network`` has another architecture.
        """
        model = copy.deepcopy(self.model)
        load_finetuned_weights(model, network, self.name)
        name = finetuned_name(self.name)
        return TimmEncoder(
            model, name=name, architecture=self.architecture, preprocess=self.preprocess
        )

    def save(self, folder: Path) -> None:
        """Write weights and settings to a folder that ``local-dir:`` loads.

        Raises:
            DataError: If the folder cannot be written.
        """
        settings = {k: self.preprocess_cfg[k] for k in ("size", "resize_mode")}
        with atomic_folder(folder) as new:
            state = self.model.state_dict()
            save_file(
                {k: v.cpu().clone().contiguous() for k, v in state.items()}, new / WEIGHTS_FILE
            )
            fields = {"name": self.name, "settings": settings}
            write_manifest(new, "timm", self.architecture, self.fingerprint, **fields)


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
    """Load a network of timm as an encoder of images.

    Args:
        architecture: Name of the architecture in timm, such as ``resnet50`` or
            ``resnet50.a1_in1k``.
        device: Device of the encoder.
        pretrained: True for pretrained weights; False for random weights, which need training.
        weights: ``.safetensors`` file of this architecture, with or without classifier; if empty,
            the weights of the Hugging Face hub.
        size: Side of the images in pixels; 0 for the size of the pretraining.
        resize_mode: ``shortest`` (center crop), ``longest`` (padding) or ``squash``.
        seed: Seed of random weights.

    Raises:
        UnknownName: If timm does not have the architecture or its weights.
        DataError: If the weights cannot be downloaded, or belong to another network.
        ConfigError: If the network does not support the image size.

    Source:
        Wightman, PyTorch Image Models, https://github.com/huggingface/pytorch-image-models.

    Differs:
        The shorter side is not cropped. The evaluation transform of timm crops 5 to 12 % of it,
        which may contain small objects.
    """
    name = f"timm:{architecture}"
    check_timm_architecture(architecture)
    if weights or pretrained:
        file = Path(weights).expanduser() if weights else hub_weights_file(architecture, name)
        network = load_timm_network(architecture, file, name)
    else:
        network = random_timm_network(architecture, seed)
    return _build_encoder(network, architecture, device, size=size, resize_mode=resize_mode)


def load_saved_timm(folder: Path, manifest: Mapping[str, Any], device: str) -> TimmEncoder:
    """Load the encoder that ``save`` wrote into a folder.

    Args:
        folder: Folder of the saved encoder.
        manifest: Content of its manifest, with ``timm`` and ``settings``.
        device: Device of the encoder.

    Raises:
        DataError: If the weights are missing or damaged, or belong to another network.
        UnknownName: If the installed version of timm does not have the architecture.
    """
    architecture, name = str(manifest["timm"]), f"timm:{manifest['timm']}"
    check_timm_architecture(architecture)
    settings = manifest_settings(timm_encoder, manifest, folder)
    size, resize_mode = settings.get("size", 0), settings.get("resize_mode", "shortest")
    network = random_timm_network(architecture, seed=0)
    set_timm_input_size(
        network, _resolve_preprocess_cfg(network, name, size, resize_mode)["size"], name
    )
    file = folder / WEIGHTS_FILE
    try:
        network.load_state_dict(read_safetensors(file, name))
    except RuntimeError as error:
        raise weights_mismatch_error(file, name, error) from error
    encoder = _build_encoder(network, architecture, device, size=size, resize_mode=resize_mode)
    encoder.name = str(manifest.get("name", name))  # with the suffix if it is fine-tuned
    return encoder


def _build_encoder(
    network: nn.Module, architecture: str, device: str, *, size: Any, resize_mode: str
) -> TimmEncoder:
    name = f"timm:{architecture}"
    preprocess = ImagePreprocessor(_resolve_preprocess_cfg(network, name, size, resize_mode))
    set_timm_input_size(network, preprocess.settings["size"], name)
    return TimmEncoder(
        network.to(device), name=name, architecture=architecture, preprocess=preprocess
    )


def _resolve_preprocess_cfg(
    network: nn.Module, name: str, size: Any, resize_mode: str
) -> dict[str, Any]:
    """Return the preprocessing of timm for these weights, with the stated size and resize mode."""
    data_config = timm_data_config(network)
    sides = (
        size if isinstance(size, list) else [size, size] if size else data_config["input_size"][1:]
    )
    if len(sides) != 2 or not all(type(s) is int and 1 <= s <= MAX_SIDE for s in sides):
        raise ConfigError(
            f"size must be the side of the images in pixels, 1 to {MAX_SIDE}, or 0 for the size "
            f"of the pretraining of {name}; got {size!r}."
        )
    use_bicubic = data_config["interpolation"] not in ALLOWED_VALUES["interpolation"]
    preprocess_cfg = {
        "size": list(sides),
        "mean": data_config["mean"],
        "std": data_config["std"],
        "interpolation": "bicubic" if use_bicubic else data_config["interpolation"],
        "resize_mode": resize_mode,
    }
    check_preprocess_cfg(preprocess_cfg, name)
    return preprocess_cfg
