"""Encode images and texts with frozen models of open_clip."""

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from open_clip.modified_resnet import ModifiedResNet
from open_clip.tokenizer import SimpleTokenizer
from safetensors.torch import save_file
from torch import Tensor, nn

from surelabel.encoders.image_inputs.out_of_distribution import OODDetector
from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.interface import ENCODER_METHODS
from surelabel.encoders.loading.encoder_manifest import write_encoder_manifest
from surelabel.encoders.loading.finetuned_weights import (
    encoder_name_for_finetuned_weights,
    load_finetuned_weights,
)
from surelabel.encoders.loading.weights_fingerprint import weights_fingerprint
from surelabel.encoders.prompts.templates import check_prompt_templates
from surelabel.encoders.towers.deep_text_prompts import DeepPromptTextEncoder
from surelabel.encoders.towers.ladder_features import ladder_features
from surelabel.encoders.towers.last_blocks import LastBlocks
from surelabel.encoders.towers.patch_attention import patch_attention_features
from surelabel.encoders.towers.patch_features import plain_patch_features, self_aware_patch_features
from surelabel.encoders.towers.position_embeddings import model_with_resized_position_embeddings
from surelabel.encoders.towers.trunk import trunk_features, trunk_token_width
from surelabel.errors import ConfigError
from surelabel.files import atomic_folder
from surelabel.records import Features

TEXT_BATCH = 256
DENSE_SIDE = 256  # pixels; a ResNet has 8 by 8 positions at this size
CONFIG_FILE, WEIGHTS_FILE = "open_clip_config.json", "open_clip_model.safetensors"


@dataclass(frozen=True)
class TrainingInfo:
    """Information about the training data of an encoder that is part of the package.

    Attributes:
        name: Name of the encoder of the package.
        training_domain: Short description of the training images.
        token_ids: Ids of all tokens that occur in the training texts.
        ood_detector: Detector of out-of-distribution images. If None, out-of-distribution scores
            are NaN.
    """

    name: str
    training_domain: str
    token_ids: frozenset[int]
    ood_detector: OODDetector | None = None


class OpenClipImageTower(nn.Module):
    """Network that contains only the image tower of an open_clip model.

    Args:
        visual: Image tower of an open_clip model.
    """

    def __init__(self, visual: nn.Module):
        super().__init__()
        self.visual = visual

    def forward(self, pixels: Tensor) -> Tensor:
        """Return vectors ``(n, d)`` of preprocessed images ``(n, 3, h, w)``, not normalized."""
        output = self.visual(pixels)
        pooled: Tensor = output[0] if isinstance(output, tuple) else output  # CoCa adds tokens
        return pooled


class OpenClipEncoder:
    """A frozen open_clip model with an image tower, a text tower and a joint space.

    Args:
        model: Model of open_clip, which is set to evaluation mode and frozen.
        tokenizer: Function that converts ``s`` sentences to token ids, ``(s, length)``.
        name: Model name that was used to load the encoder.
        config: Settings of the architecture, the ``model_cfg`` of open_clip.
        preprocess_cfg: Preprocessing settings, the ``preprocess_cfg`` of open_clip.
        training_info: Information about the training data of an embedded encoder. If None, the
            encoder is not part of the package.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        name: str,
        config: Mapping[str, Any],
        preprocess_cfg: Mapping[str, Any],
        training_info: TrainingInfo | None = None,
    ):
        self.model: Any = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name, self.config, self.training_info = name, config, training_info
        self.preprocess = ImagePreprocessor(preprocess_cfg)
        self.preprocess_cfg = self.preprocess.settings
        self.fingerprint = weights_fingerprint(
            model.state_dict(), config=config, preprocess_cfg=self.preprocess_cfg
        )
        self.width = int(config["embed_dim"])
        log_scale = model.get_parameter("logit_scale")
        self.scale, self.device = float(log_scale.exp()), log_scale.device
        self.training_domain = training_info.training_domain if training_info else ""

    @torch.no_grad()
    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``."""
        pooled = self.model.encode_image(self._check_pixels(pixels), normalize=True)
        return Features(pooled=pooled)

    @torch.no_grad()
    def encode_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors ``pooled`` and plain ``patches`` of the last layer.

        Raises:
            ConfigError: If the image tower does not support patch vectors.
        """
        return plain_patch_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_self_aware_patches(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and ``patches`` of value-to-value attention in the last layer.

        Raises:
            ConfigError: If the image tower does not support self-aware attention.
        """
        return self_aware_patch_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_patches_with_attention(self, pixels: Tensor) -> Features:
        """Return ``pooled``, self-aware ``patches``, and the ``attention`` between patches.

        Raises:
            ConfigError: If the image tower does not support self-aware attention.
        """
        return patch_attention_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and trunk tokens in ``layers[-1]``, ``(n, p, w)``.

        Raises:
            ConfigError: If the image tower has no grid of tokens.
        """
        return trunk_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_ladder_features(self, pixels: Tensor, *, first_block: int, depth: int) -> Features:
        """Return the input of the last blocks and the self-aware attention of lower blocks.

        Args:
            pixels: Preprocessed images, ``(n, 3, h, w)``.
            first_block: Index of the first block in the sum of self-aware attention, 0-based.
            depth: Number of last blocks that are run again later.

        Returns:
            Features with ``pooled``, ``layers[-depth - 1]`` and ``self_aware_sum``, as defined in
            :func:`ladder_features`.

        Raises:
            ConfigError: If the image tower is not a plain ViT, or if ``depth`` or ``first_block``
                is out of range.
        """
        pixels = self._check_pixels(pixels)
        return ladder_features(self.model.visual, pixels, first_block=first_block, depth=depth)

    def last_blocks(self, depth: int) -> LastBlocks:
        """Return the last ``depth`` blocks of the image tower, frozen.

        Raises:
            ConfigError: If the image tower is not a plain ViT, or has fewer than ``depth`` blocks.
        """
        return LastBlocks(self.model.visual, depth)

    def deep_prompt_text_encoder(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepPromptTextEncoder:
        """Return an encoder of labels with prompts in the last ``depth`` text layers.

        Raises:
            ConfigError: If the text tower is not causal, or a template does not contain exactly
                one ``{}``.
        """
        return DeepPromptTextEncoder(self.model, self.tokenizer, names, templates, depth=depth)

    @torch.no_grad()
    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return one unit vector per label, averaged over the prompt templates, ``(c, d)``.

        Args:
            names: The labels to encode.
            templates: Prompt templates, each with one ``{}``.

        Raises:
            ConfigError: If a template does not contain exactly one ``{}``.
        """
        check_prompt_templates(tuple(templates))
        sentences = [template.replace("{}", name) for name in names for template in templates]
        vectors = self.encode_sentences(sentences).unflatten(0, (len(names), len(templates)))
        return F.normalize(vectors.mean(dim=1), dim=-1)

    @torch.no_grad()
    def encode_sentences(self, sentences: Sequence[str]) -> Tensor:
        """Return one unit vector per sentence, ``(s, d)``."""
        vectors = [torch.zeros(0, self.width, device=self.device)]
        for start in range(0, len(sentences), TEXT_BATCH):
            tokens = self.tokenizer(list(sentences[start : start + TEXT_BATCH]))
            vectors.append(self.model.encode_text(tokens.to(self.device), normalize=True))
        return torch.cat(vectors)

    def labels_with_untrained_tokens(self, names: Sequence[str]) -> list[str]:
        """Return the labels with a token that does not occur in the training texts.

        If the encoder is not part of the package, the list is empty, because the training texts
        are unknown.
        """
        if self.training_info is None or not isinstance(self.tokenizer, SimpleTokenizer):
            return []
        trained_ids = self.training_info.token_ids
        return [name for name in names if not trained_ids.issuperset(self.tokenizer.encode(name))]

    def ood_score(self, pooled: Tensor) -> float:
        """Return the out-of-distribution score of a set of images.

        A set with a score above 1 is out of distribution. For embedded encoders, about 1 % of the
        sets of images from the training domain, and nearly all sets of 16 or more photographs, have
        a score above 1.

        Args:
            pooled: Unit vectors of the images, ``(n, d)``.

        Returns:
            The out-of-distribution score, >= 0. If the encoder has no detector, the score is NaN.
        """
        detector = self.training_info.ood_detector if self.training_info else None
        return math.nan if detector is None else detector.ood_score(pooled)

    def with_ood_detector(self, ood_detector: OODDetector | None) -> "OpenClipEncoder":
        """Return a copy of this encoder with another out-of-distribution detector."""
        encoder = copy.copy(self)
        info = self.training_info
        encoder.training_info = info and replace(info, ood_detector=ood_detector)
        return encoder

    def with_image_size(self, size: int) -> "OpenClipEncoder":
        """Return an encoder for another image size, with interpolated position embeddings.

        The out-of-distribution detector is valid only for the image size of the training. At other
        image sizes, ``ood_score`` returns NaN.

        Args:
            size: Side of the images in pixels.

        Raises:
            ConfigError: If ``size`` is not a multiple of the patch size, or the image tower does
                not support other image sizes.
        """
        if self.preprocess_cfg["size"] == [size, size]:
            return self
        config = {**self.config, "vision_cfg": {**self.config["vision_cfg"], "image_size": size}}
        resized = OpenClipEncoder(
            model_with_resized_position_embeddings(self.model, size),
            self.tokenizer,
            name=self.name,
            config=config,
            preprocess_cfg={**self.preprocess_cfg, "size": [size, size]},
            training_info=self.training_info,
        )
        return resized.with_ood_detector(None)

    @property
    def input_side(self) -> int:
        """Return the larger side of the preprocessed images, in pixels."""
        return self.preprocess.input_side

    @property
    def crop_mode(self) -> str:
        """Return the crop mode of the preprocessing.

        Returns:
            Crop mode ``squash``, ``center`` or ``border``, as in :class:`ImagePreprocessor`.
        """
        return self.preprocess.crop_mode

    @property
    def patch_kinds(self) -> tuple[str, ...]:
        """Return the supported kinds of patch features, the recommended kind first.

        The kinds are ``self_aware`` and ``patches``. Each kind is tested by encoding one blank
        image.
        """
        return tuple(kind for kind in ("self_aware", "patches") if self.supports(kind))

    @property
    def trunk_width(self) -> int:
        """Return the number of values of each trunk token, measured with one blank image.

        Raises:
            ConfigError: If the image tower has no grid of tokens.
        """
        return trunk_token_width(self.encode_trunk_tokens(self._blank_image))

    def supports(self, kind: str) -> bool:
        """Return whether the encoder computes a kind of features for one blank image.

        Args:
            kind: Kind of features, a key of ``ENCODER_METHODS`` or ``ladder``.
        """
        try:
            if kind == "ladder":
                self.last_blocks(1)
            else:
                getattr(self, ENCODER_METHODS[kind])(self._blank_image)
        except ConfigError:
            return False
        return True

    def with_dense_image_size(self) -> "OpenClipEncoder":
        """Return an encoder with the weights of this encoder, at the image size for patches.

        A CLIP ResNet has one patch for 32 by 32 pixels. Therefore the image size of a CLIP ResNet
        is increased to at least 256 pixels. The image size of a ViT is not changed.
        """
        is_resnet = isinstance(self.model.visual, ModifiedResNet)
        return self.with_image_size(max(DENSE_SIDE, self.input_side)) if is_resnet else self

    def trainable_network(self) -> "OpenClipImageTower":
        """Return a trainable copy of the image tower, which maps ``(n, 3, h, w)`` to ``(n, d)``.

        The output of the copy is not normalized. The copy is in evaluation mode, and all
        parameters of the copy require gradients. Training the copy does not change this encoder.
        """
        return OpenClipImageTower(copy.deepcopy(self.model.visual)).requires_grad_(True)

    def with_network(self, network: nn.Module) -> "OpenClipEncoder":
        """Return a frozen encoder whose image tower is a trained ``trainable_network()``.

        The attribute ``training_info`` of the new encoder is None, because the training data of an
        embedded encoder does not describe the new weights.

        Raises:
            InputError: If ``network`` has another architecture.
        """
        visual = copy.deepcopy(self.model.visual)
        load_finetuned_weights(OpenClipImageTower(visual), network, self.name)
        tensors = [*self.model.parameters(), *self.model.buffers()]
        memo: dict[int, Any] = {id(tensor): tensor for tensor in tensors}
        model = copy.deepcopy(self.model, memo | {id(self.model.visual): visual})
        return OpenClipEncoder(
            model,
            self.tokenizer,
            name=encoder_name_for_finetuned_weights(self.name),
            config=self.config,
            preprocess_cfg=self.preprocess_cfg,
        )

    def save(self, folder: Path) -> None:
        """Write the encoder to a folder for ``local-dir:FOLDER``.

        The saved encoder can be loaded without a network connection. If the encoder is part of the
        package, only the name, image size and fingerprint are written.

        Raises:
            DataError: If the folder cannot be written.
        """
        with atomic_folder(folder) as new:
            if self.training_info:
                size = self.preprocess_cfg["size"][0]
                name = self.training_info.name
                write_encoder_manifest(new, "embedded", name, self.fingerprint, size=size)
                return
            config = {"model_cfg": self.config, "preprocess_cfg": self.preprocess_cfg}
            (new / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")
            state = self.model.state_dict()
            save_file({k: v.cpu().contiguous() for k, v in state.items()}, new / WEIGHTS_FILE)
            if not isinstance(self.tokenizer, SimpleTokenizer):
                self.tokenizer.save_pretrained(new)

    @property
    def _blank_image(self) -> Tensor:
        return torch.zeros(1, 3, *self.preprocess_cfg["size"])

    def _check_pixels(self, pixels: Tensor) -> Tensor:
        return self.preprocess.check_pixels(pixels).to(self.device)
