"""Small models of transformers with random weights, as save_pretrained writes them."""

import json
import sys
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

sys.path.append(str(Path(__file__).parents[1]))

from family_encoders import small_tokenizer

VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 8,
    "image_size": 32,
}
TEXT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 16,
}
CLIP_IDS = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}


def clip_tokenizer():
    """Return a tokenizer of CLIP with words and letters; words end with </w>."""
    letters = [letter + end for letter in "abcdefghijklmnopqrstuvwxyz.," for end in ("", "</w>")]
    pieces = ["<|startoftext|>", "<unk>", "<|endoftext|>", *letters]
    tokenizer = Tokenizer(
        models.BPE(
            {piece: i for i, piece in enumerate(pieces)},
            [],
            end_of_word_suffix="</w>",
            unk_token="<|endoftext|>",
        )
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>",
        special_tokens=[("<|startoftext|>", 0), ("<|endoftext|>", 2)],
    )
    return tokenizer, {
        "tokenizer_class": "CLIPTokenizer",
        "bos_token": "<|startoftext|>",
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
        "unk_token": "<|endoftext|>",
    }


def tips_tokenizer():
    """Return a tokenizer of TIPSv2: byte-pair encoding in lower case without an end token."""
    tokenizer, _ = small_tokenizer("gemma")
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.normalizer = normalizers.Lowercase()
    copy.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    copy.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    return copy, {
        "tokenizer_class": "Tipsv2Tokenizer",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "model_max_length": 16,
    }


def siglip2_tokenizer():
    """Return the tokenizer of SigLIP 2 in lower case, with attention masks."""
    tokenizer, settings = small_tokenizer("gemma")
    return tokenizer, {**settings, "tokenizer_class": "Siglip2Tokenizer"}


def write_sentencepiece_model(file):
    """Write a small SentencePiece model with the special tokens of SigLIP."""
    with file.open("wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a photo of the dog", "a red cat in the sofa", "the hot dog"]),
            model_writer=stream,
            vocab_size=32,
            hard_vocab_limit=False,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            minloglevel=2,
        )


MODELS = {  # name: kind of model, settings of both towers, tokenizer, image processor
    "CLIP": ("clip", {}, CLIP_IDS, clip_tokenizer, {}),
    "MetaCLIP 2": ("metaclip_2", {}, CLIP_IDS, lambda: small_tokenizer("xlm-v"), {}),
    "SigLIP": ("siglip", {}, {}, None, {}),
    "SigLIP 2": ("siglip", {}, {}, lambda: small_tokenizer("gemma"), {}),
    "SigLIP 2 NaFlex": (
        "siglip2",
        {"num_patches": 16, "image_size": None},
        {},
        siglip2_tokenizer,
        {"patch_size": 8, "max_num_patches": 20},
    ),
    "TIPSv2": ("tipsv2", {"num_register_tokens": 1}, {}, tips_tokenizer, {}),
}
PROCESSORS = {
    "clip": {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": 32},
        "crop_size": {"height": 32, "width": 32},
        "do_center_crop": True,
        "resample": 3,
    },
    "siglip": {
        "image_processor_type": "SiglipImageProcessor",
        "size": {"height": 32, "width": 32},
        "resample": 2,
        "image_mean": [0.5, 0.4, 0.5],
        "image_std": [0.5, 0.5, 0.25],
    },
    "siglip2": {"image_processor_type": "Siglip2ImageProcessor"},
    "tipsv2": {
        "image_processor_type": "Tipsv2ImageProcessor",
        "size": {"height": 32, "width": 32},
        "do_normalize": False,
    },
}
PROCESSORS["metaclip_2"] = PROCESSORS["clip"]


def write_small_model(name, folder):
    """Write a small model with seed 0, its tokenizer and its image processor."""
    kind, vision, text, tokenizer, processor = MODELS[name]
    n_tokens = 64
    if tokenizer is None:
        write_sentencepiece_model(folder / "spiece.model")
        settings = {"tokenizer_class": "SiglipTokenizer", "do_lower_case": True}
    else:
        tokenizer, settings = tokenizer()
        tokenizer.save(str(folder / "tokenizer.json"))
        n_tokens = tokenizer.get_vocab_size() + 1
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    config_class = transformers.CONFIG_MAPPING[kind]
    sizes = {"projection_dim": 24} if kind in ("clip", "metaclip_2") else {}
    vision = {key: value for key, value in {**VISION, **vision, **sizes}.items() if value}
    text = {**TEXT, **text, **sizes, "vocab_size": n_tokens}
    if kind == "tipsv2":
        vision.pop("intermediate_size")
    config = config_class(vision_config=vision, text_config=text, **sizes)
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(config)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps({**PROCESSORS[kind], **processor}))
    return model.eval()
