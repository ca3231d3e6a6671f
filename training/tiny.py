"""Train an embedded encoder on generated scenes: `python training/tiny.py tiny-vit --out DIR`.

A contrastive loss between pictures, composed inside the loop, and captions, seven in ten of
which name the main object only. Stop it at any time: the same command goes on where it was.
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
from surelabel.data.captions import captions
from surelabel.data.emoji import draw_sprites
from surelabel.data.scenes import Sampler, compose
from surelabel.data.words import all_words

BATCH = 128
PICTURES = {"tiny-vit": 332_800, "tiny-rn": 230_400}
ICONIC_SHARE = 0.7
DECAY_SHARE = 0.3  # the last part of training, in which the step size falls and no patch is dropped
WARM_UP = 100  # steps
PATCHES_DROPPED = 0.5
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
TRAIN_SEED, TEST_SEED = 0, 1
Muon: Any = getattr(torch.optim, "Muon")  # noqa: B009  (absent from the type stubs)


class Tokens:
    """Captions as rows of a table that holds only the tokens in use."""

    def __init__(self, length: int):
        self.tokenizer = SimpleTokenizer(context_length=length)
        self.length = length
        sentences = [f"a {w.name}, and." for w in all_words()]
        sentences += ["photo picture of the in scene with near alone small large"]
        used = {int(t) for s in sentences for t in self.tokenizer(s)[0]}
        self.ids = torch.tensor(sorted(used))  # ascending, so that the end token stays the largest

    def __call__(self, texts: list[str]) -> Tensor:
        return torch.searchsorted(self.ids, self.tokenizer(texts))


def build(name: str, rows: int) -> CLIP:
    parts = {k: dict(v) if isinstance(v, dict) else v for k, v in ARCHITECTURES[name].items()}
    parts["text_cfg"]["vocab_size"] = rows
    if name == "tiny-vit":
        parts["vision_cfg"]["patch_dropout"] = PATCHES_DROPPED
    return CLIP(**parts).to(memory_format=torch.channels_last)


def optimizers(model: CLIP) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the towers, AdamW for all the rest."""
    inside = {
        name: p
        for name, p in model.named_parameters()
        if p.ndim == 2 and ("resblocks" in name or ".attnpool." in f".{name}") and "pos" not in name
    }
    rest = [p for name, p in model.named_parameters() if name not in inside]
    return [
        Muon(inside.values(), lr=2e-3, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=1.5e-3, weight_decay=0.02, betas=(0.9, 0.98)),
    ]


def pace(step: int, steps: int) -> float:
    """Share of the full step size: warm up, hold, fall to nothing."""
    held = steps * (1 - DECAY_SHARE)
    fall = 1.0 if step < held else max(0.0, (steps - step) / (steps - held))
    return min(1.0, (step + 1) / WARM_UP) * fall


def contrast(images: Tensor, texts: Tensor, scale: Tensor, main: Tensor) -> Tensor:
    """Both directions of the contrastive loss; pairs with the same main object all match."""
    logits = scale * images @ texts.T
    same = (main[:, None] == main[None]).float()
    target = same / same.sum(1, keepdim=True)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def normalised(pixels: Tensor) -> Tensor:
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    return ((pixels - mean) / std).to(memory_format=torch.channels_last)


@torch.no_grad()
def top1(model: CLIP, tokens: Tokens, sprites: Any, count: int, side: int) -> float:
    """Share of test pictures whose main object is the nearest of all words."""
    words = all_words()
    sampler = Sampler(words, seed=TEST_SEED)
    model.eval()
    texts = F.normalize(
        model.encode_text(tokens([f"a photo of a {w.name}." for w in words])), dim=-1
    )
    hits = 0
    for start in range(0, count, BATCH):
        scenes = [sampler(i) for i in range(start, min(start + BATCH, count))]
        images = model.encode_image(normalised(compose(scenes, sprites, side).pixels))
        best = (images @ texts.T).argmax(1)
        hits += int((best == torch.tensor([int(s.words[0]) for s in scenes])).sum())
    model.train()
    return hits / count


def export(model: CLIP, tokens: Tokens, name: str, folder: Path) -> None:
    """Write fp16 weights with the token rows in use and their ids, and the architecture."""
    state = {
        k: v.half().contiguous() for k, v in model.state_dict().items() if v.ndim or "scale" in k
    }
    state["token_ids"] = tokens.ids.to(torch.int32)
    save_file(state, folder / f"{name}.safetensors")
    about = {
        "model_cfg": ARCHITECTURES[name],
        "preprocess_cfg": {
            "mean": MEAN,
            "std": STD,
            "interpolation": "bicubic",
            "resize_mode": "squash",
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(about, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=ARCHITECTURES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pictures", type=int, help="in all; by default as the shipped ones")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=200, help="steps between checkpoints")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(TRAIN_SEED)
    options.out.mkdir(parents=True, exist_ok=True)

    words, side = all_words(), ARCHITECTURES[options.name]["vision_cfg"]["image_size"]
    sprites, sampler = draw_sprites(words), Sampler(words, seed=TRAIN_SEED)
    tokens = Tokens(ARCHITECTURES[options.name]["text_cfg"]["context_length"])
    model = build(options.name, len(tokens.ids))
    both = optimizers(model)
    full_rates = [[g["lr"] for g in o.param_groups] for o in both]
    saved, seconds, first = options.out / f"{options.name}.pt", 0.0, 0
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.load_state_dict(state["model"])
        for optimizer, old in zip(both, state["optimizers"], strict=True):
            optimizer.load_state_dict(old)
        first, seconds = state["step"], state["seconds"]

    steps = (options.pictures or PICTURES[options.name]) // BATCH
    started, smooth = time.time(), math.nan
    for step in range(first, steps):
        share = pace(step, steps)
        for optimizer, rates in zip(both, full_rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * share
        if options.name == "tiny-vit" and step >= steps * (1 - DECAY_SHARE):
            model.visual.patch_dropout.prob = 0.0
        scenes = [sampler(i) for i in range(step * BATCH, (step + 1) * BATCH)]
        pictures = compose(scenes, sprites, side)
        rng = np.random.default_rng([TRAIN_SEED, step, 2])
        kinds = np.where(rng.random(BATCH) < ICONIC_SHARE, 0, rng.integers(1, 5, BATCH))
        texts = [
            captions(s, seen, words)[kind].text
            for s, seen, kind in zip(scenes, pictures.seen.numpy(), kinds, strict=True)
        ]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            images, sentences, scale = model(normalised(pictures.pixels), tokens(texts))
        main_words = torch.tensor([int(s.words[0]) for s in scenes])
        loss = contrast(images.float(), sentences.float(), scale, main_words)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in both:
            optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
        smooth = loss.item() if math.isnan(smooth) else 0.98 * smooth + 0.02 * loss.item()
        if (step + 1) % options.every == 0 or step + 1 == steps:
            spent = seconds + time.time() - started
            last = step + 1 == steps
            line = {
                "pictures": (step + 1) * BATCH,
                "seconds": round(spent),
                "loss": round(smooth, 4),
                "top1_main": round(top1(model, tokens, sprites, 5000 if last else 640, side), 4),
            }
            with (options.out / f"{options.name}.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(line, flush=True)
            state = {
                "model": model.state_dict(),
                "optimizers": [o.state_dict() for o in both],
                "step": step + 1,
                "seconds": spent,
            }
            torch.save(state, saved.with_suffix(".new"))
            saved.with_suffix(".new").replace(saved)
            export(model, tokens, options.name, options.out)


if __name__ == "__main__":
    main()
