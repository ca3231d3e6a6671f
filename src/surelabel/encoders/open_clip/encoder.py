"""Encode images and texts with frozen models of open_clip."""

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from open_clip.hf_model import HFTextEncoder
from open_clip.modified_resnet import ModifiedResNet
from open_clip.tokenizer import SimpleTokenizer
from safetensors.torch import save_file
from torch import Tensor, nn

from surelabel.encoders.engines.interface import TORCH_FP32
from surelabel.encoders.image_inputs.out_of_distribution import OODDetector
from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.interface import ENCODER_METHODS
from surelabel.encoders.loading.encoder_manifest import write_encoder_manifest
from surelabel.encoders.loading.finetuned_weights import (
    encoder_name_for_finetuned_weights,
    load_finetuned_weights,
)
from surelabel.encoders.loading.licenses import write_encoder_model_card
from surelabel.encoders.loading.weights_fingerprint import weights_fingerprint
from surelabel.encoders.open_clip.hugging_face_texts import TEXT_CONFIG_FILE
from surelabel.encoders.prompts.templates import encode_labels_with_templates
from surelabel.encoders.towers.context_prompts import ContextPromptTextEncoder
from surelabel.encoders.towers.deep_text_prompts import DeepPromptTextEncoder
from surelabel.encoders.towers.ladder_features import ladder_features
from surelabel.encoders.towers.last_blocks import LastBlocks
from surelabel.encoders.towers.multi_layer_patches import (
    multi_layer_patch_features,
    multi_layer_shape,
)
from surelabel.encoders.towers.patch_attention import patch_attention_features
from surelabel.encoders.towers.patch_features import (
    has_self_aware_patches,
    plain_patch_features,
    self_aware_patch_features,
)
from surelabel.encoders.towers.position_embeddings import model_with_resized_position_embeddings
from surelabel.encoders.towers.sentence_tokens import (
    sentence_block_tokens,
    sentence_token_features,
)
from surelabel.encoders.towers.trainable_blocks import TrainableLastBlocks
from surelabel.encoders.towers.trunk import trunk_features, trunk_token_width
from surelabel.errors import ConfigError
from surelabel.files import atomic_folder
from surelabel.records import EncoderLicense, Features

TEXT_BATCH = 256
DENSE_SIDE = 256  # pixels; a ResNet has 8 by 8 positions at this size
UNKNOWN_LICENSE = EncoderLicense()
CONFIG_FILE, WEIGHTS_FILE = "open_clip_config.json", "open_clip_model.safetensors"


@dataclass(frozen=True)
class TrainingInfo:
    """Information about the training data of an embedded encoder.

    The weights of an embedded encoder are part of the package.

    Attributes:
        name: Name of the embedded encoder.
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
        """Return unnormalized vectors ``(n, d)`` of preprocessed images ``(n, 3, h, w)``."""
        output = self.visual(pixels)
        pooled: Tensor = output[0] if isinstance(output, tuple) else output  # CoCa adds tokens
        return pooled


class OpenClipEncoder:
    """A frozen open_clip model with an image tower, a text tower and a joint space.

    Args:
        model: Model of open_clip. The constructor sets it to evaluation mode and freezes its
            parameters.
        tokenizer: Function that converts ``s`` sentences to token ids ``(s, k)``, where ``k`` is
            the context length.
        name: Model name that was used to load the encoder.
        config: Settings of the architecture, the ``model_cfg`` of open_clip.
        preprocess_cfg: Preprocessing settings, the ``preprocess_cfg`` of open_clip.
        training_info: Information about the training data of an embedded encoder. If None, the
            weights of the encoder are not part of the package.
        license: License of the weights.
    """

    engine = TORCH_FP32

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        name: str,
        config: Mapping[str, Any],
        preprocess_cfg: Mapping[str, Any],
        training_info: TrainingInfo | None = None,
        license: EncoderLicense = UNKNOWN_LICENSE,
    ):
        self.model: Any = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name, self.config, self.training_info = name, config, training_info
        self.license = license
        self.preprocess = ImagePreprocessor(preprocess_cfg)
        self.preprocess_cfg = self.preprocess.settings
        self.fingerprint = weights_fingerprint(
            model.state_dict(), config=config, preprocess_cfg=self.preprocess_cfg
        )
        self.width = int(config["embed_dim"])
        log_scale = model.get_parameter("logit_scale")
        self.scale, self.device = float(log_scale.exp()), log_scale.device
        logit_bias = dict(model.named_parameters()).get("logit_bias")
        self.logit_bias = None if logit_bias is None else float(logit_bias)
        self.training_domain = training_info.training_domain if training_info else ""
        self._resized: dict[int, OpenClipEncoder] = {}  # by image size

    @torch.no_grad()
    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images ``(n, 3, h, w)``.

        Raises:
            InputError: If the pixels do not have the shape of preprocessed images.
        """
        pooled = self.model.encode_image(self._check_pixels(pixels), normalize=True)
        return Features(pooled=pooled)

    @torch.no_grad()
    def encode_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and plain patch vectors, ``patches``.

        Plain patch vectors are defined in :func:`plain_patch_features`.

        Raises:
            ConfigError: If the image tower does not support patch vectors.
        """
        return plain_patch_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_self_aware_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and of patches, ``patches``.

        The patch vectors are computed with value-to-value attention in the last layer, as defined
        in :func:`self_aware_patch_features`. If the tower has no known attention layers, the patch
        vectors are plain patch vectors.

        Raises:
            ConfigError: If the image tower does not support patch vectors.
        """
        return self_aware_patch_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_patches_with_attention(self, pixels: Tensor) -> Features:
        """Return ``pooled``, self-aware ``patches``, and the ``attention`` between patches.

        The attention weights are defined in :func:`patch_attention_features`.

        Raises:
            ConfigError: If the image tower does not support patch vectors.
        """
        return patch_attention_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_multi_layer_patches(self, pixels: Tensor) -> Features:
        """Return ``pooled``, ``patches`` and the outputs of several layers, ``multi_layer``.

        The vectors and layers are defined in :func:`multi_layer_patch_features`.

        Raises:
            ConfigError: If the image tower does not support patch vectors.
        """
        return multi_layer_patch_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_trunk_tokens(self, pixels: Tensor) -> Features:
        """Return ``pooled``, and trunk tokens in ``layers[-1]``, ``(n, p, w)``.

        Trunk tokens are the outputs of the image tower before pooling, as defined in
        :func:`trunk_features`.

        Raises:
            ConfigError: If the image tower has neither a feature map nor a grid of patch tokens.
        """
        return trunk_features(self.model.visual, self._check_pixels(pixels))

    @torch.no_grad()
    def encode_ladder_features(self, pixels: Tensor, *, first_block: int, depth: int) -> Features:
        """Return the input features of a ladder, a side network on the last ViT blocks.

        Args:
            pixels: Preprocessed images, ``(n, 3, h, w)``.
            first_block: Index of the first block in the sum of self-aware attention, 0-based.
            depth: Number of last blocks that the ladder computes again. These blocks are not in
                the sum.

        Returns:
            Features with ``pooled``, ``layers[-depth - 1]`` and ``self_aware_sum``, as defined in
            :func:`ladder_features`.

        Raises:
            ConfigError: If the image tower is not a ViT with known attention layers, or if
                ``depth`` or ``first_block`` is out of range.
        """
        pixels = self._check_pixels(pixels)
        return ladder_features(self.model.visual, pixels, first_block=first_block, depth=depth)

    def last_blocks(self, depth: int) -> LastBlocks:
        """Return the last ``depth`` blocks of the image tower with frozen weights.

        Raises:
            ConfigError: If the image tower is not a ViT with known attention layers, or has fewer
                than ``depth`` blocks.
        """
        return LastBlocks(self.model.visual, depth)

    def trainable_last_blocks(self, depth: int) -> TrainableLastBlocks:
        """Return trainable copies of the last ``depth`` blocks of both towers.

        Raises:
            ConfigError: If the image tower is not a plain ViT, if the text tower is not a causal
                text tower as in CLIP, or if a tower has fewer than ``depth`` blocks.
        """
        return TrainableLastBlocks(self.model, depth)

    def deep_prompt_text_encoder(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepPromptTextEncoder:
        """Return an encoder of labels with learned prompts in the last ``depth`` text layers.

        Raises:
            ConfigError: If the text tower is not a causal text tower as in CLIP, ``depth`` is not
                an integer >= 1, or a template does not contain exactly one ``{}``.
        """
        return DeepPromptTextEncoder(self.model, self.tokenizer, names, templates, depth=depth)

    def context_prompt_text_encoder(
        self, names: Sequence[str], *, length: int
    ) -> ContextPromptTextEncoder:
        """Return an encoder of labels with a learned context of ``length`` vectors.

        Raises:
            ConfigError: If the text tower is not a transformer of open_clip, ``length`` is not an
                integer >= 1, or the context and a label are longer than the tower allows.
        """
        return ContextPromptTextEncoder(self.model, self.tokenizer, names, length=length)

    @torch.no_grad()
    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return one unit vector for each of ``c`` labels, ``(c, d)``.

        The vector of a label is the normalized mean of the unit vectors over the prompt templates.

        Args:
            names: The labels to encode.
            templates: Prompt templates, each with one ``{}``.

        Raises:
            ConfigError: If a template does not contain exactly one ``{}``.
        """
        return encode_labels_with_templates(self.encode_sentences, names, templates)

    @torch.no_grad()
    def encode_sentences(self, sentences: Sequence[str]) -> Tensor:
        """Return one unit vector for each of ``s`` sentences, ``(s, d)``.

        Sentences that are longer than the context length of the text tower are cut.
        """
        vectors = [torch.zeros(0, self.width, device=self.device)]
        for start in range(0, len(sentences), TEXT_BATCH):
            tokens = self.tokenizer(list(sentences[start : start + TEXT_BATCH]))
            vectors.append(self.model.encode_text(tokens.to(self.device), normalize=True))
        return torch.cat(vectors)

    def encode_sentence_tokens(self, sentences: Sequence[str]) -> Features:
        """Return unit vectors of sentences and of their tokens, all encoded in one batch.

        Sentences that are longer than the context length of the text tower are cut.

        Returns:
            Features with ``pooled``, ``patches`` and ``patch_mask``, as defined in
            :func:`sentence_token_features`.

        Raises:
            ConfigError: If the text tower is not a transformer of open_clip.
        """
        tokens = self.tokenizer(list(sentences))
        return sentence_token_features(self.model, tokens.to(self.device))

    def encode_sentence_block_tokens(self, sentences: Sequence[str], *, depth: int) -> Features:
        """Return the input tokens of the last text blocks, for all sentences in one batch.

        Sentences that are longer than the context length of the text tower are cut.

        Returns:
            Features with ``pooled``, ``layers[-depth - 1]`` and ``patch_mask``, as defined in
            :func:`sentence_block_tokens`.

        Raises:
            ConfigError: If the text tower is not a causal text tower as in CLIP, or has fewer than
                ``depth`` blocks.
        """
        tokens = self.tokenizer(list(sentences))
        return sentence_block_tokens(self.model, tokens.to(self.device), depth=depth)

    def labels_with_untrained_tokens(self, names: Sequence[str]) -> list[str]:
        """Return the labels with at least one token that does not occur in the training texts.

        If the encoder is not an embedded encoder, its training texts are unknown, and the list is
        empty.
        """
        if self.training_info is None or not isinstance(self.tokenizer, SimpleTokenizer):
            return []
        trained_ids = self.training_info.token_ids
        return [name for name in names if not trained_ids.issuperset(self.tokenizer.encode(name))]

    def count_cut_tokens(self, sentences: Sequence[str]) -> list[int]:
        """Return the number of tokens of each sentence beyond the context of the text tower.

        These tokens are cut from the words of the sentence, because start and end tokens are always
        in the context.
        """
        context = int(self.tokenizer.context_length)
        if isinstance(self.tokenizer, SimpleTokenizer):
            lengths = [len(self.tokenizer.encode(sentence)) + 2 for sentence in sentences]
        else:
            tokenizer = self.tokenizer.tokenizer
            lengths = [len(tokenizer(sentence)["input_ids"]) for sentence in sentences]
        return [max(0, length - context) for length in lengths]

    def ood_score(self, pooled: Tensor) -> float:
        """Return the out-of-distribution score of a set of images.

        A set with a score above 1 is out of distribution. For embedded encoders, about 1 % of the
        sets of images from the training domain have a score above 1. Photographs are outside this
        domain: nearly all sets of 16 photographs have a score above 1.

        Args:
            pooled: Unit vectors of the ``n`` images of the set, ``(n, d)``.

        Returns:
            The out-of-distribution score, >= 0. If the encoder has no detector, or the set is
            empty, the score is NaN.
        """
        detector = self.training_info.ood_detector if self.training_info else None
        return math.nan if detector is None else detector.ood_score(pooled)

    def with_ood_detector(self, ood_detector: OODDetector | None) -> "OpenClipEncoder":
        """Return a copy of this encoder with another out-of-distribution detector.

        Only embedded encoders can have a detector. The copy of another encoder has no detector.
        """
        encoder = copy.copy(self)
        info = self.training_info
        encoder.training_info = info and replace(info, ood_detector=ood_detector)
        return encoder

    def with_image_size(self, size: int) -> "OpenClipEncoder":
        """Return an encoder for another image size, with interpolated position embeddings.

        The out-of-distribution detector is valid only for the original image size. Therefore, if
        the image size changes, ``ood_score`` of the new encoder returns NaN. The encoder for each
        size is created once.

        Args:
            size: Side of the images in pixels.

        Raises:
            ConfigError: If ``size`` is not a multiple of the patch size, or the image tower does
                not support other image sizes.
        """
        if self.preprocess_cfg["size"] == [size, size]:
            return self
        if size not in self._resized:
            self._resized[size] = self._resize(size)
        return self._resized[size]

    def _resize(self, size: int) -> "OpenClipEncoder":
        config = {**self.config, "vision_cfg": {**self.config["vision_cfg"], "image_size": size}}
        resized = OpenClipEncoder(
            model_with_resized_position_embeddings(self.model, size),
            self.tokenizer,
            name=self.name,
            config=config,
            preprocess_cfg={**self.preprocess_cfg, "size": [size, size]},
            training_info=self.training_info,
            license=self.license,
        )
        return resized.with_ood_detector(None)

    @property
    def n_image_parameters(self) -> int:
        """Return the number of parameters of the image tower."""
        return sum(parameter.numel() for parameter in self.model.visual.parameters())

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
        """Return the supported kinds of patch features: ``self_aware``, ``patches`` or both.

        The first kind is recommended. If the tower has no attention layers with known values,
        ``encode_self_aware_patches`` returns plain patches, and ``self_aware`` is omitted. Whether
        plain patches are supported is tested with one blank image.
        """
        if not self.supports("patches"):
            return ()
        return (
            ("self_aware", "patches") if has_self_aware_patches(self.model.visual) else ("patches",)
        )

    @property
    def trunk_width(self) -> int:
        """Return the number of values of each trunk token, measured with one blank image.

        Raises:
            ConfigError: If the image tower has neither a feature map nor a grid of patch tokens.
        """
        return trunk_token_width(self.encode_trunk_tokens(self._blank_image))

    @property
    def multi_layer_shape(self) -> tuple[int, int]:
        """Return the numbers of layers and of values per layer, measured with one blank image.

        Raises:
            ConfigError: If the image tower has no patch vectors.
        """
        return multi_layer_shape(self.encode_multi_layer_patches(self._blank_image))

    def supports(self, kind: str) -> bool:
        """Return True if the encoder can compute the features ``kind``.

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
        """Return a version of this encoder at the image size recommended for patch features.

        A CLIP ResNet has one patch per 32 by 32 pixels. Therefore the image size of a CLIP ResNet
        is increased to at least 256 by 256 pixels. For all other towers, the image size does not
        change.
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
        """Return a frozen encoder with the image tower ``network``.

        The attribute ``training_info`` of the new encoder is None, because the information about an
        embedded encoder is not valid for fine-tuned weights.

        Args:
            network: Module that ``trainable_network()`` returned, after training.

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
            license=self.license,
        )

    def save(self, folder: Path) -> None:
        """Write the encoder to a folder.

        The model name ``local-dir:FOLDER`` loads the encoder from this folder without a network
        connection. For an embedded encoder, only the name, image size and fingerprint are written.

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
            text_tower = getattr(self.model, "text", None)
            if isinstance(text_tower, HFTextEncoder):
                text_config = text_tower.config.to_json_string()
                (new / TEXT_CONFIG_FILE).write_text(text_config, encoding="utf-8")
            write_encoder_model_card(new, self.name, self.license)

    @property
    def _blank_image(self) -> Tensor:
        return torch.zeros(1, 3, *self.preprocess_cfg["size"])

    def _check_pixels(self, pixels: Tensor) -> Tensor:
        return self.preprocess.check_pixels(pixels).to(self.device)
