"""Encode images and texts with dual encoders of transformers, such as SigLIP 2 and TIPSv2."""

import copy
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

from surelabel.encoders.image_inputs.preprocessing import ImagePreprocessor
from surelabel.encoders.image_only.image_only import BaseImageOnlyEncoder
from surelabel.encoders.interface import Encoder
from surelabel.encoders.loading.encoder_manifest import write_encoder_manifest
from surelabel.encoders.loading.finetuned_weights import (
    encoder_name_for_finetuned_weights,
    load_finetuned_weights,
)
from surelabel.encoders.loading.licenses import (
    model_card_license,
    write_encoder_model_card,
)
from surelabel.encoders.loading.weights_fingerprint import weights_fingerprint
from surelabel.encoders.open_clip.hugging_face_texts import check_hugging_face_tokenizer_folder
from surelabel.encoders.prompts.templates import encode_labels_with_templates
from surelabel.encoders.towers.multi_layer_patches import (
    average_in_cells,
    multi_layer_shape,
    multi_layer_vit_features,
)
from surelabel.encoders.towers.patch_attention import vit_patch_attention_features
from surelabel.encoders.towers.patch_features import (
    plain_vit_patch_features,
    self_aware_vit_patch_features,
)
from surelabel.encoders.transformers.image_processor import (
    PROCESSOR_FILES,
    image_processor_settings,
    read_transformers_image_processor,
)
from surelabel.encoders.transformers.model import (
    WEIGHTS_FILE,
    load_transformers_model,
    load_transformers_tokenizer,
)
from surelabel.encoders.transformers.model_config import (
    CONFIG_FILE,
    read_transformers_model_config,
)
from surelabel.encoders.transformers.model_files import (
    PREFIX,
    TransformersModelFiles,
    check_transformers_package,
    transformers_folder_files,
    transformers_model_files,
)
from surelabel.encoders.transformers.naflex import NaflexPreprocessor
from surelabel.encoders.transformers.patches import PatchFeatures, transformers_patch_features
from surelabel.encoders.transformers.vit import position_options
from surelabel.errors import ConfigError
from surelabel.files import atomic_folder
from surelabel.records import EncoderLicense, Features

TEXT_BATCH = 256
TEXT_INPUTS = ("input_ids", "attention_mask")
UNKNOWN_LICENSE = EncoderLicense()
_log = logging.getLogger(__name__)


class TransformersImageTower(nn.Module):
    """Network that maps preprocessed images to vectors in the joint space, without normalization.

    Args:
        model: Dual encoder of transformers.
        preprocess: Preprocessing of the images.
    """

    def __init__(self, model: Any, preprocess: ImagePreprocessor | NaflexPreprocessor):
        super().__init__()
        self.vision_model = model.vision_model
        self.projection = getattr(model, "visual_projection", nn.Identity())
        self._preprocess = preprocess

    def forward(self, pixels: Tensor) -> Tensor:
        """Return vectors ``(n, d)`` of preprocessed images."""
        if isinstance(self._preprocess, NaflexPreprocessor):
            outputs = self.vision_model(**self._preprocess.unpack(pixels)._asdict())
        else:
            checked = self._preprocess.check_pixels(pixels)
            kind = self.vision_model.config.model_type
            outputs = self.vision_model(pixel_values=checked, **position_options(kind))
        vectors: Tensor = self.projection(outputs.pooler_output)
        return vectors


class TransformersEncoder(BaseImageOnlyEncoder):
    """A frozen dual encoder of transformers.

    Args:
        model: Model of transformers. The constructor sets it to evaluation mode and freezes its
            parameters.
        tokenizer: Tokenizer of transformers.
        preprocess: Function that converts an upright RGB image to a tensor.
        name: Model name that was used to load the encoder.
        settings: Checked settings of :func:`read_transformers_model_config`.
        license: License of the weights.

    Attributes:
        logit_bias: Bias of the logits in contrastive training. If None, the model has no bias.
    """

    preprocess: ImagePreprocessor | NaflexPreprocessor

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        preprocess: ImagePreprocessor | NaflexPreprocessor,
        *,
        name: str,
        settings: Mapping[str, Any],
        license: EncoderLicense = UNKNOWN_LICENSE,
    ):
        super().__init__(name)
        self.model: Any = model.eval().requires_grad_(False)
        self.license = license
        self.tokenizer, self.preprocess, self.settings = tokenizer, preprocess, settings
        self.preprocess_cfg = preprocess.settings
        is_aligned = settings["model_type"] == "tipsv2"  # its patch tokens are aligned with texts
        self.patch_kinds = ("patches", "self_aware") if is_aligned else ("self_aware", "patches")
        self.fingerprint = weights_fingerprint(
            model.state_dict(), config=settings, preprocess_cfg=self.preprocess_cfg
        )
        self.device = next(model.parameters()).device
        parameters = dict(model.named_parameters())
        temperature, bias = parameters.get("temperature"), parameters.get("logit_bias")
        scale = 1 / temperature if temperature is not None else parameters["logit_scale"].exp()
        self.scale = float(scale)
        self.logit_bias = None if bias is None else float(bias)
        self._image_tower = TransformersImageTower(self.model, preprocess)
        self._resized: dict[int, TransformersEncoder] = {}  # by image size
        self.width = self.encode_images(self._blank_image).pooled.shape[1]

    @torch.no_grad()
    def encode_images(self, pixels: Tensor) -> Features:
        """Return ``pooled`` unit vectors of preprocessed images, the output of ``preprocess``.

        Raises:
            InputError: If the pixels do not have the shape of preprocessed images.
        """
        return Features(pooled=F.normalize(self._image_tower(pixels.to(self.device)), dim=-1))

    @torch.no_grad()
    def encode_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and plain patch vectors, ``patches``.

        Plain patch vectors are defined in :func:`plain_patch_features`, and resized as described in
        :func:`transformers_patch_features`.
        """
        return self._patch_features(pixels, plain_vit_patch_features)

    @torch.no_grad()
    def encode_self_aware_patches(self, pixels: Tensor) -> Features:
        """Return unit vectors of images, ``pooled``, and of patches, ``patches``.

        The patch vectors are computed with value-to-value attention in the last layer, as defined
        in :func:`self_aware_patch_features`.
        """
        return self._patch_features(pixels, self_aware_vit_patch_features)

    @torch.no_grad()
    def encode_patches_with_attention(self, pixels: Tensor) -> Features:
        """Return ``pooled``, self-aware ``patches``, and the ``attention`` between patches.

        The attention weights are defined in :func:`patch_attention_features`.
        """
        return self._patch_features(pixels, vit_patch_attention_features)

    @torch.no_grad()
    def encode_multi_layer_patches(self, pixels: Tensor) -> Features:
        """Return ``pooled``, ``patches`` and the outputs of several layers, ``multi_layer``.

        The vectors and layers are defined in :func:`multi_layer_patch_features`.
        """
        return average_in_cells(self._patch_features(pixels, multi_layer_vit_features))

    def _patch_features(self, pixels: Tensor, compute: PatchFeatures) -> Features:
        pixels = pixels.to(self.device)
        return transformers_patch_features(self.model, self.preprocess, pixels, compute)

    def with_image_size(self, size: int) -> "TransformersEncoder":
        """Return an encoder for another image size, with interpolated position embeddings.

        If ``size`` is ``input_side``, this encoder is returned. The encoder for each size is
        created once.

        Args:
            size: Side of the images in pixels. For SigLIP 2 NaFlex, the side of a square image,
                from which the number of patches is computed.

        Raises:
            ConfigError: If ``size`` is not a multiple of the patch size.
        """
        if size in (self.input_side, self.preprocess_cfg["size"][0]):
            return self
        if size not in self._resized:
            side = int(self.model.config.vision_config.patch_size)
            if size < side or size % side:
                raise ConfigError(
                    f"The image size must be a multiple of {side} pixels for {self.name}; got "
                    f"{size}. The nearest multiple is {max(round(size / side), 1) * side}."
                )
            resized = type(self)(
                self.model,
                self.tokenizer,
                self.preprocess.with_size(size),
                name=self.name,
                settings=self.settings,
                license=self.license,
            )
            self._resized[size] = resized
        return self._resized[size]

    @property
    def multi_layer_shape(self) -> tuple[int, int]:
        """Return the numbers of layers and of values per layer, measured with one blank image."""
        return multi_layer_shape(self.encode_multi_layer_patches(self._blank_image))

    def supports(self, kind: str) -> bool:
        """Return True if the encoder can compute the features ``kind``."""
        return kind in ("images", "patches", "self_aware", "attentive", "multi_layer")

    @property
    def n_image_parameters(self) -> int:
        """Return the number of parameters of the image tower."""
        return sum(parameter.numel() for parameter in self._image_tower.parameters())

    @property
    def input_side(self) -> int:
        """Return the side to which images can be reduced before preprocessing, in pixels."""
        return self.preprocess.input_side

    @property
    def crop_mode(self) -> str:
        """Return the crop mode of the preprocessing: ``squash`` or ``center``."""
        return self.preprocess.crop_mode

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

        Sentences are padded to the context length of the text tower, as in training, and longer
        sentences are cut.
        """
        vectors = [torch.zeros(0, self.width, device=self.device)]
        for start in range(0, len(sentences), TEXT_BATCH):
            tokens = self.tokenizer(
                list(sentences[start : start + TEXT_BATCH]),
                padding="max_length",
                truncation=True,
                max_length=self._context_length,
                return_tensors="pt",
            )
            inputs = {key: tokens[key].to(self.device) for key in TEXT_INPUTS if key in tokens}
            pooled = self.model.get_text_features(**inputs).pooler_output
            vectors.append(F.normalize(pooled, dim=-1))
        return torch.cat(vectors)

    def count_cut_tokens(self, sentences: Sequence[str]) -> list[int]:
        """Return the number of tokens of each sentence beyond the context of the text tower."""
        lengths = (len(self.tokenizer(sentence)["input_ids"]) for sentence in sentences)
        return [max(0, length - self._context_length) for length in lengths]

    def trainable_network(self) -> nn.Module:
        """Return a trainable copy of the image tower, which maps pixels to ``(n, d)``.

        The output of the copy is not normalized. The copy is in evaluation mode, and all
        parameters of the copy require gradients. Training the copy does not change this encoder.
        """
        return copy.deepcopy(self._image_tower).requires_grad_(True)

    def with_network(self, network: nn.Module) -> Encoder:
        """Return a frozen encoder with the image tower ``network``.

        Args:
            network: Module that ``trainable_network()`` returned, after training.

        Raises:
            InputError: If ``network`` has another architecture.
        """
        model = copy.deepcopy(self.model)
        tower = TransformersImageTower(model, self.preprocess)  # shares the weights of the model
        load_finetuned_weights(tower, network, self.name)
        return TransformersEncoder(
            model,
            self.tokenizer,
            self.preprocess,
            name=encoder_name_for_finetuned_weights(self.name),
            settings=self.settings,
            license=self.license,
        )

    def save(self, folder: Path) -> None:
        """Write the encoder to a folder.

        The model name ``local-dir:FOLDER`` loads the encoder from this folder without a network
        connection.

        Raises:
            DataError: If the folder cannot be written.
        """
        with atomic_folder(folder) as new:
            (new / CONFIG_FILE).write_text(json.dumps(self.settings, indent=2) + "\n")
            processor = image_processor_settings(self.preprocess)
            (new / PROCESSOR_FILES[0]).write_text(json.dumps(processor, indent=2) + "\n")
            state = self.model.state_dict()
            weights = {key: tensor.cpu().clone().contiguous() for key, tensor in state.items()}
            save_file(weights, new / WEIGHTS_FILE, metadata={"format": "pt"})
            self.tokenizer.save_pretrained(new)
            write_encoder_model_card(new, self.name, self.license)
            kind = self.settings["model_type"]
            write_encoder_manifest(new, "transformers", kind, self.fingerprint, name=self.name)

    @property
    def _blank_image(self) -> Tensor:
        return self.preprocess(Image.new("RGB", (32, 32)))[None]

    @property
    def _context_length(self) -> int:
        return int(self.model.config.text_config.max_position_embeddings)

    def _raise_no_blocks(self) -> NoReturn:
        raise ConfigError(
            f"Methods that run single blocks need a tower of open_clip; {self.name} is a model of "
            "transformers. Use tiny-vit or ViT-B-16/openai."
        )

    def _raise_no_text_tower(self) -> NoReturn:
        raise ConfigError(
            f"Token vectors and learned prompts need a text tower of open_clip; {self.name} is a "
            "model of transformers. Use a method that needs only vectors of labels, or an encoder "
            "of open_clip, such as ViT-B-16/openai."
        )


def transformers_encoder(source: str, device: str) -> TransformersEncoder:
    """Load a dual encoder of transformers.

    No code of the model is run, and only safetensors weights are read.

    Args:
        source: Folder of the model, or name of a repository on the Hugging Face hub,
            ``owner/name``. The model must be CLIP, MetaCLIP 2, SigLIP, SigLIP 2 or TIPSv2.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If a file is missing or damaged, belongs to another model, or cannot be
            downloaded.
        ConfigError: If the kind of model or a setting is not supported.
        MissingPart: If transformers, or a package of the tokenizer, is not installed.
    """
    name = f"{PREFIX}{source}"
    check_transformers_package(name)
    return _build_transformers_encoder(name, transformers_model_files(source), device)


def load_saved_transformers_encoder(
    folder: Path, manifest: Mapping[str, Any], device: str
) -> TransformersEncoder:
    """Load an encoder from a folder that was written by ``save``.

    Args:
        folder: Folder of the saved encoder.
        manifest: Content of the manifest, with the keys ``transformers`` and ``name``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        DataError: If a file is missing or damaged, or belongs to another model.
        ConfigError: If a setting is not supported.
        MissingPart: If transformers, or a package of the tokenizer, is not installed.
    """
    name = str(manifest.get("name", f"{PREFIX}{folder}"))
    check_transformers_package(name)
    return _build_transformers_encoder(name, transformers_folder_files(folder), device)


def _build_transformers_encoder(
    name: str, files: TransformersModelFiles, device: str
) -> TransformersEncoder:
    settings = read_transformers_model_config(files.config)
    preprocess = read_transformers_image_processor(files.image_processor, settings["model_type"])
    check_hugging_face_tokenizer_folder(files.tokenizer_folder)
    tokenizer = load_transformers_tokenizer(name, files.tokenizer_folder)
    _log.info(
        "Loading the weights of %s (%s MB)", name, f"{files.weights.stat().st_size / 1e6:,.1f}"
    )
    model = load_transformers_model(name, settings, files.weights)
    license = model_card_license(files.model_card, "its model card")
    _log.info("License of %s: %s", name, license)
    return TransformersEncoder(
        model.to(device), tokenizer, preprocess, name=name, settings=settings, license=license
    )
