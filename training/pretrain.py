"""Train an embedded encoder on generated scenes: `python training/pretrain.py tiny-vit --out DIR`.

The loss is contrastive, between images that are rendered during training and their captions. Seven
in ten captions name the main object only. The same command resumes an interrupted training.
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from safetensors.torch import save_file
from torch import Tensor

from architectures import ARCHITECTURES
from surelabel.data.emoji_sprites import draw_sprites
from surelabel.data.scene_arrangement import SceneSampler
from surelabel.data.scene_captions import caption_scene
from surelabel.data.scene_words import all_scene_words
from surelabel.data.scenes import render_scenes

BATCH_SIZE = 128
IMAGES = {"tiny-vit": 332_800, "tiny-rn": 230_400}
ICONIC_SHARE = 0.7
DECAY_SHARE = 0.3  # last fraction of training, with learning-rate decay and no patch dropout
WARM_UP_STEPS = 100
PATCH_DROPOUT = 0.5
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
TRAIN_SEED, TEST_SEED = 0, 1
Muon: Any = getattr(torch.optim, "Muon")  # noqa: B009  (absent from the type stubs)


class ReducedTokenizer:
    """Tokenizer whose ids are the rows of an embedding table that contains only used tokens."""

    def __init__(self, length: int):
        self.tokenizer = SimpleTokenizer(context_length=length)
        self.length = length
        sentences = [f"a {word.name}, and." for word in all_scene_words()]
        sentences += ["photo picture of the in scene with near alone small large"]
        used_ids = {int(token) for text in sentences for token in self.tokenizer(text)[0]}
        self.ids = torch.tensor(sorted(used_ids))  # sorted: the end token must keep the largest id

    def __call__(self, texts: list[str]) -> Tensor:
        return torch.searchsorted(self.ids, self.tokenizer(texts))


def build_model(name: str, vocab_size: int) -> CLIP:
    """Create an untrained model of one embedded architecture."""
    config = {k: dict(v) if isinstance(v, dict) else v for k, v in ARCHITECTURES[name].items()}
    config["text_cfg"]["vocab_size"] = vocab_size
    if name == "tiny-vit":
        config["vision_cfg"]["patch_dropout"] = PATCH_DROPOUT
    return CLIP(**config).to(memory_format=torch.channels_last)


def build_optimizers(model: CLIP) -> list[torch.optim.Optimizer]:
    """Return Muon for the matrices inside the towers, and AdamW for the other parameters."""
    matrices = {
        name: p
        for name, p in model.named_parameters()
        if p.ndim == 2 and ("resblocks" in name or ".attnpool." in f".{name}") and "pos" not in name
    }
    others = [p for name, p in model.named_parameters() if name not in matrices]
    return [
        Muon(matrices.values(), lr=2e-3, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=1.5e-3, weight_decay=0.02, betas=(0.9, 0.98)),
    ]


def learning_rate_share(step: int, steps: int) -> float:
    """Return the fraction of the maximum learning rate.

    The learning rate warms up, is constant, and decays linearly to 0.
    """
    decay_start = steps * (1 - DECAY_SHARE)
    decay = 1.0 if step < decay_start else max(0.0, (steps - step) / (steps - decay_start))
    return min(1.0, (step + 1) / WARM_UP_STEPS) * decay


def contrastive_loss(images: Tensor, texts: Tensor, scale: Tensor, main: Tensor) -> Tensor:
    """Return the contrastive loss of both directions.

    All images and texts with the same main object are positive pairs.
    """
    logits = scale * images @ texts.T
    is_match = (main[:, None] == main[None]).float()
    target = is_match / is_match.sum(1, keepdim=True)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def normalize(pixels: Tensor) -> Tensor:
    """Normalize pixels with the mean and the standard deviation of the encoder."""
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    return ((pixels - mean) / std).to(memory_format=torch.channels_last)


@torch.no_grad()
def top1_accuracy(
    model: CLIP, tokenizer: ReducedTokenizer, sprites: Any, count: int, side: int
) -> float:
    """Return the fraction of test images for which the word of the main object is the nearest."""
    words = all_scene_words()
    sampler = SceneSampler(words, seed=TEST_SEED)
    model.eval()
    texts = F.normalize(
        model.encode_text(tokenizer([f"a photo of a {word.name}." for word in words])), dim=-1
    )
    n_correct = 0
    for start in range(0, count, BATCH_SIZE):
        scenes = [sampler(i) for i in range(start, min(start + BATCH_SIZE, count))]
        images = model.encode_image(normalize(render_scenes(scenes, sprites, side).pixels))
        nearest = (images @ texts.T).argmax(1)
        n_correct += int((nearest == main_columns(scenes)).sum())
    model.train()
    return n_correct / count


def main_columns(scenes: list[Any]) -> Tensor:
    """Return the column of the main object of each scene."""
    return torch.tensor([int(scene.words[0]) for scene in scenes])


def export_weights(model: CLIP, tokenizer: ReducedTokenizer, name: str, folder: Path) -> None:
    """Write the fp16 weights with the ids of the used tokens, and the architecture."""
    state = {
        k: v.half().contiguous() for k, v in model.state_dict().items() if v.ndim or "scale" in k
    }
    state["token_ids"] = tokenizer.ids.to(torch.int32)
    save_file(state, folder / f"{name}.safetensors")
    config = {
        "model_cfg": ARCHITECTURES[name],
        "preprocess_cfg": {
            "mean": MEAN,
            "std": STD,
            "interpolation": "bicubic",
            "resize_mode": "squash",
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(config, indent=2) + "\n")


def main() -> None:
    """Train the encoder, and write a checkpoint, a log line and weights at intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=ARCHITECTURES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--images", type=int, help="number of training images (default: that of the release)"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=200, help="steps between checkpoints")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(TRAIN_SEED)
    options.out.mkdir(parents=True, exist_ok=True)

    words, side = all_scene_words(), ARCHITECTURES[options.name]["vision_cfg"]["image_size"]
    sprites, sampler = draw_sprites(words), SceneSampler(words, seed=TRAIN_SEED)
    tokenizer = ReducedTokenizer(ARCHITECTURES[options.name]["text_cfg"]["context_length"])
    model = build_model(options.name, len(tokenizer.ids))
    optimizers = build_optimizers(model)
    max_rates = [[group["lr"] for group in o.param_groups] for o in optimizers]
    checkpoint, previous_seconds, first_step = options.out / f"{options.name}.pt", 0.0, 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        for optimizer, optimizer_state in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(optimizer_state)
        first_step, previous_seconds = state["step"], state["seconds"]

    steps = (options.images or IMAGES[options.name]) // BATCH_SIZE
    started, smooth_loss = time.time(), math.nan
    for step in range(first_step, steps):
        share = learning_rate_share(step, steps)
        for optimizer, rates in zip(optimizers, max_rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * share
        if options.name == "tiny-vit" and step >= steps * (1 - DECAY_SHARE):
            model.visual.patch_dropout.prob = 0.0
        scenes = [sampler(i) for i in range(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)]
        rendered = render_scenes(scenes, sprites, side)
        rng = np.random.default_rng([TRAIN_SEED, step, 2])
        is_iconic = rng.random(BATCH_SIZE) < ICONIC_SHARE
        kinds = np.where(is_iconic, 0, rng.integers(1, 5, BATCH_SIZE))
        shares = rendered.visible_shares.numpy()
        captions = [
            caption_scene(scene, visible_shares, words)[kind].text
            for scene, visible_shares, kind in zip(scenes, shares, kinds, strict=True)
        ]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            images, texts, scale = model(normalize(rendered.pixels), tokenizer(captions))
        loss = contrastive_loss(images.float(), texts.float(), scale, main_columns(scenes))
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
        is_first = math.isnan(smooth_loss)
        smooth_loss = loss.item() if is_first else 0.98 * smooth_loss + 0.02 * loss.item()
        is_last = step + 1 == steps
        if (step + 1) % options.every == 0 or is_last:
            seconds = previous_seconds + time.time() - started
            accuracy = top1_accuracy(model, tokenizer, sprites, 5000 if is_last else 640, side)
            line = {
                "images": (step + 1) * BATCH_SIZE,
                "seconds": round(seconds),
                "loss": round(smooth_loss, 4),
                "top1_main": round(accuracy, 4),
            }
            with (options.out / f"{options.name}.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(line, flush=True)
            state = {
                "model": model.state_dict(),
                "optimizers": [optimizer.state_dict() for optimizer in optimizers],
                "step": step + 1,
                "seconds": seconds,
            }
            torch.save(state, checkpoint.with_suffix(".new"))
            checkpoint.with_suffix(".new").replace(checkpoint)
            export_weights(model, tokenizer, options.name, options.out)


if __name__ == "__main__":
    main()
