"""Small checkpoints of the encoder families of open_clip, with the parts of the published models.

A small checkpoint has two blocks of width 128 or less, with the same kinds of blocks, pooling,
projection and tokenizer class as the published model. The networks of timm are built by their own
functions, with other numbers of blocks and channels, and are registered in timm under new names.
"""

import copy
import json
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple

import open_clip
import timm
import torch
import torch.nn.functional as F
from open_clip.pretrained import get_pretrained_cfg, list_pretrained_tags_by_model
from open_clip.tokenizer import SimpleTokenizer
from timm.layers import HybridEmbed
from timm.models import register_model
from timm.models.vision_transformer_hybrid import ConvStem
from timm.models.vitamin import VitCfg, VitConvCfg
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from surelabel.encoders.open_clip.checkpoint_model import _build_open_clip_model
from surelabel.encoders.open_clip.encoder import OpenClipEncoder
from surelabel.encoders.open_clip.hugging_face_texts import (
    hugging_face_text_config_folder,
    hugging_face_tokenizer,
)
from surelabel.errors import ConfigError

WORDS = ("a", "photo", "of", "the", "dog", "hot", "cat", "sofa", "couch", "red", "bird", "in")
WIDTH = 32
LABELS, TEMPLATES = ["dog", "hot dog", "sofa|couch"], ["a photo of a {}.", "the {}"]
SENTENCES = ["a red dog", "a photo of the hot dog in a cat"]


NOTHING = MappingProxyType({})


class Family(NamedTuple):
    """An encoder family.

    Attributes:
        architecture: Name of the representative architecture in open_clip.
        trunk: Arguments of the function of timm that builds the small image tower.
        tokenizer: Key of ``TOKENIZERS``; empty for the tokenizer of CLIP.
        vision: Other settings of the small image tower.
        side: Side of the images of the small image tower, in pixels.
        embed_dim: Dimension of the joint space of the small model.
        text_config: Configuration of a text tower of transformers.
    """

    architecture: str
    trunk: Mapping = NOTHING
    tokenizer: str = ""
    vision: Mapping = NOTHING
    side: int = 32
    embed_dim: int = 24
    text_config: Mapping = NOTHING


SMALL_VIT = {"layers": 2, "width": WIDTH, "head_width": 16, "patch_size": 8}
VITAMIN_STAGES = VitCfg(
    embed_dim=(8, 16, WIDTH),
    depths=(1, 1, 1),
    stem_width=8,
    conv_cfg=VitConvCfg(norm_layer="layernorm2d", norm_eps=1e-6),
    head_type="1d",
)
CONV_STEM = partial(
    ConvStem,
    channels=(8, 8, WIDTH),
    stride=(4, 2, 2),
    kernel_size=(4, 2, 2),
    padding=0,
    act_layer=torch.nn.GELU,
)
VIT_TRUNK = {"depth": 2, "embed_dim": WIDTH, "num_heads": 2, "img_size": 32}
CONVNEXT_TRUNK = {"depths": (1, 1, 1, 1), "dims": (16, 16, 16, WIDTH)}
FAMILIES = {
    "OpenAI CLIP, ViT": Family("ViT-B-32", vision=SMALL_VIT),
    "OpenAI CLIP, ResNet": Family(
        "RN50", vision={"layers": [1, 1, 1, 1], "width": 8, "head_width": 32}, side=64
    ),
    "SigLIP": Family("ViT-B-16-SigLIP", VIT_TRUNK, "t5", embed_dim=WIDTH),
    "SigLIP 2": Family("ViT-B-16-SigLIP2", VIT_TRUNK, "gemma", embed_dim=WIDTH),
    "PE-Core, B to bigG": Family("PE-Core-B-16", {**VIT_TRUNK, "attn_pool_num_heads": 2}),
    "PE-Core, T and S": Family("PE-Core-S-16-384", {**VIT_TRUNK, "attn_pool_num_heads": 2}),
    "MobileCLIP2, S": Family(
        "MobileCLIP2-S0", {"layers": (1, 1, 1, 1), "embed_dims": (16, 16, 16, WIDTH)}, side=64
    ),
    "MobileCLIP2, B": Family(
        "MobileCLIP2-B",
        {
            **VIT_TRUNK,
            "embed_layer": lambda **sizes: HybridEmbed(CONV_STEM(), proj=False, **sizes),
        },
    ),
    "MobileCLIP2, L": Family("MobileCLIP2-L-14", {**VIT_TRUNK, "patch_size": 8}),
    "EVA02": Family("EVA02-B-16", VIT_TRUNK),
    "ConvNeXt": Family("convnext_base", CONVNEXT_TRUNK, side=64),
    "ConvNeXt, D": Family("convnext_large_d", CONVNEXT_TRUNK, side=64),
    "ViTamin": Family("ViTamin-B", {**VIT_TRUNK, "embed_cfg": VITAMIN_STAGES}),
    "CoCa": Family("coca_ViT-B-32", vision={**SMALL_VIT, "attn_pooler_heads": 2}),
    "MetaCLIP 2, ViT-L": Family("ViT-L-14-worldwide", tokenizer="mt5", vision=SMALL_VIT),
    "MetaCLIP 2, ViT-H and larger": Family(
        "ViT-H-14-worldwide", tokenizer="xlm-v", vision=SMALL_VIT
    ),
    "CLIPA": Family("ViT-L-14-CLIPA", tokenizer="bert", vision=SMALL_VIT),
    "Swin": Family(
        "swin_base_patch4_window7_224",
        {"depths": (1, 1, 1, 1), "embed_dim": 8, "num_heads": (1, 1, 2, 2), "img_size": 64},
        side=64,
    ),
    "ViT of timm, mean": Family("vit_medium_patch16_gap_256", VIT_TRUNK),
    "ViT of timm, relative positions": Family("vit_relpos_medium_patch16_cls_224", VIT_TRUNK),
    "XLM-RoBERTa": Family(
        "xlm-roberta-base-ViT-B-32",
        tokenizer="xlm-v",
        vision=SMALL_VIT,
        text_config={
            "model_type": "xlm-roberta",
            "hidden_size": WIDTH,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": WIDTH,
            "max_position_embeddings": 90,
            "pad_token_id": 1,
        },
    ),
    "NLLB-CLIP": Family(
        "nllb-clip-base",
        tokenizer="nllb",
        vision=SMALL_VIT,
        text_config={
            "model_type": "m2m_100",
            "d_model": WIDTH,
            "encoder_layers": 2,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": WIDTH,
            "decoder_ffn_dim": WIDTH,
            "max_position_embeddings": 90,
            "pad_token_id": 1,
        },
    ),
    "mT5": Family(
        "mt5-base-ViT-B-32",
        tokenizer="mt5",
        vision=SMALL_VIT,
        text_config={
            "model_type": "mt5",
            "d_model": WIDTH,
            "d_ff": WIDTH,
            "d_kv": 16,
            "num_heads": 2,
            "num_layers": 2,
            "num_decoder_layers": 1,
            "pad_token_id": 0,
        },
    ),
}


def unigram(specials, *, dummy_eos, template):
    """Return a tokenizer of SentencePiece pieces, such as those of T5 and XLM-RoBERTa."""
    pieces = [*specials, *(f"▁{word}" for word in WORDS), "▁", *"abcdefghijklmnopqrstuvwxyz.,"]
    tokenizer = Tokenizer(
        models.Unigram([(piece, -1.0 - i / 50) for i, piece in enumerate(pieces)], unk_id=2)
    )
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    ids = {piece: i for i, piece in enumerate(pieces)}
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(s, ids[s]) for s in specials if s in template.split()]
    )
    return tokenizer, {"eos_token": dummy_eos}


MEMBERS = {  # family: pattern of the names of its architectures in open_clip
    "OpenAI CLIP, ViT": r"ViT-(S|M|B|L|H|g|e|bigG)-\d+(-plus|-alt)?(-\d+)?(-quickgelu)?",
    "OpenAI CLIP, ResNet": r"RN\d+(x\d+)?(-quickgelu)?",
    "SigLIP": r"ViT-\w+-\d+-SigLIP(-i18n)?(-\d+)?",
    "SigLIP 2": r"ViT-\w+-\d+-SigLIP2(-\d+)?",
    "PE-Core, B to bigG": r"PE-Core-(B|L|bigG)-.*",
    "PE-Core, T and S": r"PE-Core-(T|S)-.*",
    "MobileCLIP2, S": r"MobileCLIP2?-S\d",
    "MobileCLIP2, B": r"MobileCLIP2?-B",
    "MobileCLIP2, L": r"MobileCLIP2-L-14",
    "EVA02": r"EVA0[12]-.*",
    "ConvNeXt": r"convnext_.*(?<!_d)(?<!_d_320)",
    "ConvNeXt, D": r"convnext_\w+_d(_320)?",
    "ViTamin": r"ViTamin-.*",
    "CoCa": r"coca_ViT-.*",
    "MetaCLIP 2, ViT-L": r"ViT-L-14-worldwide.*",
    "MetaCLIP 2, ViT-H and larger": r"ViT-(H|bigG)-14-worldwide.*",
    "CLIPA": r"ViT-.*-CLIPA(-336)?",
    "Swin": r"swin_.*",
    "ViT of timm, mean": r"vit_medium_patch16_gap_256",
    "ViT of timm, relative positions": r"vit_relpos_.*",
    "XLM-RoBERTa": r"(xlm-)?roberta-.*",
    "NLLB-CLIP": r"nllb-clip-(base|large)",
    "mT5": r"mt5-.*",
}
DERIVED = {  # architecture: families with the same image tower and the same kind of text tower
    "coca_base": ("OpenAI CLIP, ViT", "CoCa"),
    "coca_roberta-ViT-B-32": ("OpenAI CLIP, ViT", "XLM-RoBERTa"),
    "nllb-clip-base-siglip": ("SigLIP", "NLLB-CLIP"),
    "nllb-clip-large-siglip": ("SigLIP", "NLLB-CLIP"),
}


clip_tokenizer = cache(SimpleTokenizer)  # by context length


@cache
def small_tokenizer(kind):
    """Return a small tokenizer of the class of the published models, and its settings."""
    return TOKENIZERS[kind]()


def t5_tokenizer():
    """SigLIP: pieces of SentencePiece in lower case; the padding is the end token."""
    tokenizer, settings = unigram(["<pad>", "</s>", "<unk>"], dummy_eos="</s>", template="$A </s>")
    more = {"tokenizer_class": "T5Tokenizer", "pad_token": "</s>", "unk_token": "<unk>"}
    return tokenizer, {**settings, **more, "extra_ids": 0}


def mt5_tokenizer():
    """MetaCLIP 2, ViT-L: pieces of SentencePiece with the end token 1 and the padding 0."""
    tokenizer, settings = unigram(["<pad>", "</s>", "<unk>"], dummy_eos="</s>", template="$A </s>")
    more = {"tokenizer_class": "T5Tokenizer", "pad_token": "<pad>", "unk_token": "<unk>"}
    return tokenizer, {**settings, **more, "extra_ids": 0}


def xlm_v_tokenizer():
    """MetaCLIP 2, ViT-H: the start token 0, the padding 1 and the end token 2."""
    tokenizer = unigram(
        ["<s>", "<pad>", "</s>", "<unk>"], dummy_eos="</s>", template="<s> $A </s>"
    )[0]
    return tokenizer, {
        "tokenizer_class": "XLMRobertaTokenizer",
        "bos_token": "<s>",
        "cls_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }


def nllb_tokenizer():
    """NLLB: the language and the end token are added to each sentence."""
    tokenizer, _ = unigram(
        ["<s>", "<pad>", "</s>", "<unk>", "eng_Latn"], dummy_eos="</s>", template="eng_Latn $A </s>"
    )
    return tokenizer, {
        "tokenizer_class": "NllbTokenizer",
        "bos_token": "<s>",
        "cls_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "src_lang": "eng_Latn",
        "additional_special_tokens": ["eng_Latn"],
    }


def gemma_tokenizer():
    """SigLIP 2: byte-pair encoding with bytes as fallback, the end token 1, the padding 0."""
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz.,"]
    words, merges = [], []
    for word in WORDS:
        piece = "▁"
        for letter in word:
            if piece + letter not in words:
                merges.append((piece, letter))
                words.append(piece + letter)
            piece += letter
    pieces = [*specials, *(f"<0x{i:02X}>" for i in range(256)), *letters, *words]
    tokenizer = Tokenizer(
        models.BPE(
            {piece: i for i, piece in enumerate(pieces)},
            merges,
            byte_fallback=True,
            fuse_unk=True,
            unk_token="<unk>",
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", 1)]
    )
    return tokenizer, {
        "tokenizer_class": "GemmaTokenizer",
        "pad_token": "<pad>",
        "eos_token": "<eos>",
        "bos_token": "<bos>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
        "add_bos_token": False,
        "add_eos_token": True,
        "padding_side": "right",
    }


def bert_tokenizer():
    """CLIPA: word pieces with a class token and a separator."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [prefix + letter for prefix in ("", "##") for letter in "abcdefghijklmnopqrstuvwxyz"]
    pieces = [*specials, *WORDS[1:], *letters, ".", ","]
    tokenizer = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer, {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        **{f"{s.strip('[]').lower()}_token": s for s in specials},
    }


TOKENIZERS = {
    "bert": bert_tokenizer,
    "gemma": gemma_tokenizer,
    "mt5": mt5_tokenizer,
    "nllb": nllb_tokenizer,
    "t5": t5_tokenizer,
    "xlm-v": xlm_v_tokenizer,
}


def register_small_trunk(trunk, arguments):
    """Register a small version of a network of timm, and return its name."""
    build = timm.models.model_entrypoint(trunk)

    def small(pretrained=False, **more):
        return build(pretrained, **{**more, **arguments})

    small.__name__ = f"small_{trunk}"
    if not timm.is_model(small.__name__):
        register_model(small)
    return small.__name__


def small_model_cfg(family):
    """Return the settings of the small model."""
    config = copy.deepcopy(open_clip.get_model_config(family.architecture))
    config["embed_dim"] = family.embed_dim
    vision, text = config["vision_cfg"], config["text_cfg"]
    vision.update(image_size=family.side, **family.vision)
    if trunk := vision.get("timm_model_name"):
        vision["timm_model_name"] = register_small_trunk(trunk, family.trunk)
    if family.text_config:
        return config
    text.update(width=WIDTH, heads=2, layers=2, context_length=16)
    if family.tokenizer:
        text["vocab_size"] = small_tokenizer(family.tokenizer)[0].get_vocab_size() + 1
    if "multimodal_cfg" in config:
        config["multimodal_cfg"].update(width=WIDTH, heads=2, layers=1, vocab_size=8)
    return config


def family_preprocess_cfg(family):
    """Return the preprocessing settings of the first published weights of the family."""
    tags = list_pretrained_tags_by_model(family.architecture)
    cfg = get_pretrained_cfg(family.architecture, tags[0]) if tags else {}
    return {
        "mean": list(cfg.get("mean") or open_clip.OPENAI_DATASET_MEAN),
        "std": list(cfg.get("std") or open_clip.OPENAI_DATASET_STD),
        "interpolation": cfg.get("interpolation") or "bicubic",
        "resize_mode": cfg.get("resize_mode") or "shortest",
    }


def family_encoder(family, config, text_config, folder):
    """Return an encoder with random weights (seed 0) and a small tokenizer.

    Args:
        family: Family of the encoder.
        config: Settings of the architecture, the ``model_cfg`` of open_clip.
        text_config: Configuration of a text tower of transformers, or an empty mapping.
        folder: Folder for the files of the tokenizer.
    """
    text_cfg, text_file = config["text_cfg"], folder / "config.json"
    if text_config:
        text_file.write_text(json.dumps(text_config))
    torch.manual_seed(0)
    with (
        hugging_face_text_config_folder(text_file) if text_config else nullcontext()
    ) as text_folder:
        model = _build_open_clip_model(config, text_folder)
    if family.tokenizer:
        tokenizer, settings = small_tokenizer(family.tokenizer)
        tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        tokenizer = hugging_face_tokenizer(folder, text_cfg)
    else:
        tokenizer = clip_tokenizer(context_length=text_cfg.get("context_length", 77))
    preprocess_cfg = {**family_preprocess_cfg(family), "size": model.visual.image_size}
    return OpenClipEncoder(
        model, tokenizer, name=family.architecture, config=config, preprocess_cfg=preprocess_cfg
    )


def small_encoder(name, folder):
    """Return a small encoder of a family with random weights."""
    family = FAMILIES[name]
    text_config = family.text_config
    if text_config:
        n_tokens = small_tokenizer(family.tokenizer)[0].get_vocab_size() + 1
        text_config = {**text_config, "vocab_size": n_tokens}
    return family_encoder(family, small_model_cfg(family), text_config, folder)


def feature_support(encoder, *, n_images=2):
    """Return whether each feature of ``FEATURES`` works with an encoder.

    A feature that does not work must raise ConfigError with a remedy.
    """
    torch.manual_seed(0)
    pixels = torch.randn(n_images, 3, *encoder.preprocess_cfg["size"])
    supported = {}
    for feature, compute in FEATURES.items():
        try:
            compute(encoder, pixels)
            supported[feature] = True
        except ConfigError as error:
            if " Use " not in str(error):
                raise
            supported[feature] = False
    return supported


def _encode_with_context(encoder, pixels):
    texts = encoder.context_prompt_text_encoder(LABELS, length=3)
    texts.encode(torch.randn(3, texts.width))


def _encode_with_deep_prompts(encoder, pixels):
    texts = encoder.deep_prompt_text_encoder(LABELS, TEMPLATES, depth=2)
    texts.encode(torch.randn(texts.depth, 2, texts.width))


def _encode_larger_images(encoder, pixels):
    larger = encoder.with_image_size(2 * pixels.shape[-1])
    larger.encode_images(F.interpolate(pixels[:1], scale_factor=2))


def _encode_self_aware_patches(encoder, pixels):
    if "self_aware" not in encoder.patch_kinds:
        raise ConfigError(f"{encoder.name} has no attention values. Use plain patches.")
    encoder.encode_self_aware_patches(pixels)


def _run_ladder(encoder, pixels):
    features = encoder.encode_ladder_features(pixels, first_block=0, depth=1)
    list(encoder.last_blocks(1).run_blocks(features.layers[-2]))


def _run_trainable_blocks(encoder, pixels):
    blocks = encoder.trainable_last_blocks(1)
    blocks.images(encoder.encode_ladder_features(pixels, first_block=0, depth=1))
    blocks.texts(encoder.encode_sentence_block_tokens(SENTENCES, depth=1))


IMAGE_FEATURES = {  # name of the column in docs/models.md: what is computed
    "image vectors": lambda encoder, pixels: encoder.encode_images(pixels),
    "plain patches": lambda encoder, pixels: encoder.encode_patches(pixels),
    "self-aware patches": _encode_self_aware_patches,
    "patch attention": lambda encoder, pixels: encoder.encode_patches_with_attention(pixels),
    "trunk tokens": lambda encoder, pixels: encoder.encode_trunk_tokens(pixels),
    "ladder": _run_ladder,
    "fine-tuning": lambda encoder, pixels: encoder.trainable_network()(pixels),
    "other image size": _encode_larger_images,
}
TEXT_FEATURES = {
    "templates": lambda encoder, pixels: encoder.encode_labels(LABELS, TEMPLATES),
    "sentence tokens": lambda encoder, pixels: encoder.encode_sentence_tokens(SENTENCES),
    "context prompts": _encode_with_context,
    "deep prompts": _encode_with_deep_prompts,
    "trainable blocks": _run_trainable_blocks,
}
FEATURES = {**IMAGE_FEATURES, **TEXT_FEATURES}
