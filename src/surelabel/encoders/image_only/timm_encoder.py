"""Load networks of timm as image encoders that can be fine-tuned."""

import copy
import logging
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
    check_timm_network_architecture,
    check_timm_network_value_count,
    load_timm_network,
    random_timm_network,
    read_timm_network_weights,
    set_timm_network_input_size,
    timm_network_data_config,
    timm_network_hub_weights_file,
    timm_network_license,
    timm_network_output_width,
    timm_network_weights_mismatch_error,
)
from surelabel.encoders.interface import Encoder
from surelabel.encoders.loading.encoder_manifest import (
    encoder_manifest_settings,
    write_encoder_manifest,
)
from surelabel.encoders.loading.finetuned_weights import (
    encoder_name_for_finetuned_weights,
    load_finetuned_weights,
)
from surelabel.encoders.loading.licenses import (
    MODEL_CARD_FILE,
    model_card_license,
    write_encoder_model_card,
)
from surelabel.encoders.loading.weights_fingerprint import weights_fingerprint
from surelabel.encoders.towers.trunk import (
    timm_trunk_tokens,
    trunk_features_from_tokens,
    trunk_token_width,
)
from surelabel.errors import ConfigError
from surelabel.files import atomic_folder
from surelabel.records import Features

_log = logging.getLogger(__name__)


class TimmEncoder(ImageOnlyEncoder):
    """A frozen timm network without a classifier, which computes one vector per image.

    Args:
        model: Network of timm without a classifier. The constructor sets it to evaluation mode and
            freezes its parameters.
        name: Model name that was used to load the encoder.
        architecture: Name of the architecture in timm, with or without the tag of the weights, such
            as ``resnet50`` or ``resnet50.a1_in1k``.
        preprocess: Function that converts an upright RGB image to a tensor ``(3, h, w)``.
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
        self.width = timm_network_output_width(self.model, self.preprocess_cfg["size"], name)

    @torch.no_grad()
    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``.

        Raises:
            InputError: If the pixels do not have the shape of preprocessed images.
        """
        vectors = self.model(self.preprocess.check_pixels(pixels).to(self.device))
        return Features(pooled=F.normalize(vectors, dim=-1))

    @torch.no_grad()
    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and trunk tokens in ``layers[-1]``, ``(n, p, w)``.

        The trunk tokens are the last feature map of a convolutional network, or the patch tokens
        after the final norm of a transformer. Each of ``n`` images has ``p`` tokens of width ``w``.

        Raises:
            ConfigError: If the network has neither a feature map nor a grid of patch tokens.
        """
        network: Any = self.model
        last = network.forward_features(self.preprocess.check_pixels(pixels).to(self.device))
        return trunk_features_from_tokens(
            network.forward_head(last), timm_trunk_tokens(network, last), network
        )

    @property
    def n_image_parameters(self) -> int:
        """Return the number of parameters of the network."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def trunk_width(self) -> int:
        """Return the number of values of each trunk token, measured with one blank image.

        Raises:
            ConfigError: If the network has neither a feature map nor a grid of patch tokens.
        """
        return trunk_token_width(
            self.encode_trunk_tokens(torch.zeros(1, 3, *self.preprocess_cfg["size"]))
        )

    def supports(self, kind: str) -> bool:
        """Return True if ``kind`` is ``trunk`` and the network computes trunk tokens."""
        try:
            return kind == "trunk" and self.trunk_width > 0
        except ConfigError:
            return False

    def trainable_network(self) -> nn.Module:
        """Return a trainable copy of the network, which maps ``(n, 3, h, w)`` to ``(n, d)``.

        The output of the copy is not normalized. The copy is in evaluation mode, and all
        parameters of the copy require gradients. Training the copy does not change this encoder.
        """
        return copy.deepcopy(self.model).requires_grad_(True)

    def with_network(self, network: nn.Module) -> Encoder:
        """Return a frozen encoder with the weights of ``network``.

        Args:
            network: Module that ``trainable_network()`` returned, after training.

        Raises:
            InputError: If ``network`` has another architecture.
        """
        model = copy.deepcopy(self.model)
        load_finetuned_weights(model, network, self.name)
        name = encoder_name_for_finetuned_weights(self.name)
        encoder = TimmEncoder(
            model, name=name, architecture=self.architecture, preprocess=self.preprocess
        )
        encoder.license = self.license
        return encoder

    def save(self, folder: Path) -> None:
        """Write weights and settings to a folder.

        The model name ``local-dir:FOLDER`` loads the encoder from this folder.

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
            write_encoder_manifest(new, "timm", self.architecture, self.fingerprint, **fields)
            write_encoder_model_card(new, self.name, self.license)


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
    """Load a network of timm as an image encoder.

    Args:
        architecture: Name of the architecture in timm, such as ``resnet50`` or
            ``resnet50.a1_in1k``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.
        pretrained: If True, pretrained weights are loaded from the Hugging Face hub. If False, the
            weights are random, so that the network must be trained. If ``weights`` is given, this
            setting has no effect.
        weights: Path of a ``.safetensors`` file with weights of ``architecture``, with or without
            a classifier. If empty, ``pretrained`` selects the weights.
        size: Side of the images in pixels. If 0, the image size of the pretraining configuration
            is used.
        resize_mode: Resize mode ``shortest`` (center crop), ``longest`` (padding) or ``squash``.
        seed: Seed of the random weights if ``pretrained`` is False and ``weights`` is empty.

    Raises:
        UnknownName: If timm does not contain the architecture or the tag of the weights.
        DataError: If the weights cannot be downloaded or read, or belong to another network.
        ConfigError: If ``size`` or ``resize_mode`` is invalid, or the network does not support the
            image size or does not compute one vector per image.

    Source:
        Wightman, PyTorch Image Models, https://github.com/huggingface/pytorch-image-models.

    Differs:
        The shorter side of an image is not cropped. The evaluation transform of timm removes 5 to
        12 % of the shorter side, although the removed part may contain small objects. An
        interpolation other than bicubic and bilinear is replaced by bicubic interpolation.
    """
    name = f"timm:{architecture}"
    check_timm_network_architecture(architecture)
    if weights or pretrained:
        file = (
            Path(weights).expanduser()
            if weights
            else timm_network_hub_weights_file(architecture, name)
        )
        network = load_timm_network(architecture, file, name)
    else:
        network = random_timm_network(architecture, seed)
    encoder = _build_timm_encoder(network, architecture, device, size=size, resize_mode=resize_mode)
    if pretrained and not weights:
        encoder.license = timm_network_license(architecture)
        _log.info("License of %s: %s", name, encoder.license)
    return encoder


def load_saved_timm_encoder(folder: Path, manifest: Mapping[str, Any], device: str) -> TimmEncoder:
    """Load a timm encoder from a folder that was written by ``save``.

    Args:
        folder: Folder of the saved encoder.
        manifest: Content of the manifest, with the keys ``timm`` and ``settings``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If the weights are missing or damaged, or belong to another network.
        UnknownName: If the installed version of timm does not contain the architecture.
        ConfigError: If a setting in the manifest is invalid.
    """
    architecture, name = str(manifest["timm"]), f"timm:{manifest['timm']}"
    check_timm_network_architecture(architecture)
    settings = encoder_manifest_settings(timm_encoder, manifest, folder)
    size, resize_mode = settings.get("size", 0), settings.get("resize_mode", "shortest")
    file = folder / WEIGHTS_FILE
    state = read_timm_network_weights(file, name)
    check_timm_network_value_count(architecture, state, file, name)
    network = random_timm_network(architecture, seed=0)
    set_timm_network_input_size(
        network,
        _resolve_timm_encoder_preprocess_cfg(network, name, size, resize_mode)["size"],
        name,
    )
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise timm_network_weights_mismatch_error(file, name, error) from error
    encoder = _build_timm_encoder(network, architecture, device, size=size, resize_mode=resize_mode)
    encoder.name = str(manifest.get("name", name))  # with the suffix if it is fine-tuned
    encoder.license = model_card_license(folder / MODEL_CARD_FILE, "the model card of the folder")
    return encoder


def _build_timm_encoder(
    network: nn.Module, architecture: str, device: str, *, size: Any, resize_mode: str
) -> TimmEncoder:
    name = f"timm:{architecture}"
    preprocess = ImagePreprocessor(
        _resolve_timm_encoder_preprocess_cfg(network, name, size, resize_mode)
    )
    set_timm_network_input_size(network, preprocess.settings["size"], name)
    return TimmEncoder(
        network.to(device), name=name, architecture=architecture, preprocess=preprocess
    )


def _resolve_timm_encoder_preprocess_cfg(
    network: nn.Module, name: str, size: Any, resize_mode: str
) -> dict[str, Any]:
    """Return the preprocessing settings of timm with the stated ``size`` and ``resize_mode``."""
    data_config = timm_network_data_config(network)
    sides = (
        size if isinstance(size, list) else [size, size] if size else data_config["input_size"][1:]
    )
    if len(sides) != 2 or not all(type(s) is int and 1 <= s <= MAX_SIDE for s in sides):
        raise ConfigError(
            f"size must be the side of the images, 1 to {MAX_SIDE} pixels; got {size!r}. Use 0 for "
            f"the image size of the pretraining of {name}."
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
