"""Put trained encoders into the package: `python training/world.py DIR`.

Copies the weights of DIR (without DIR: keeps those of the package) and stores beside them where
the image vectors of scenes lie, so that an encoder can tell pictures that look nothing like its
world.
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from surelabel.backbones.embedded import BACKBONES, from_weights
from surelabel.backbones.familiarity import SIZES, familiarity, save_familiarity
from surelabel.backbones.towers import Towers
from surelabel.data.emoji import draw_sprites
from surelabel.data.scenes import Sampler, compose
from surelabel.data.words import Word, all_words

INSIDE = Path(__file__).parents[1] / "src" / "surelabel" / "backbones" / "weights"
BATCH, SIDE = 64, 128  # pixels of the collections; the encoders shrink them
FIT_SEED, LIMIT_SEED = 2, 3


def scene_vectors(
    encoders: Sequence[Towers], words: Sequence[Word], seed: int, count: int
) -> list[Tensor]:
    """Image vectors of ``count`` scenes of ``words``, ``(count, d)``, by each encoder."""
    sampler, sprites = Sampler(words, seed=seed), draw_sprites(words)
    seen: list[list[Tensor]] = [[] for _ in encoders]
    for start in range(0, count, BATCH):
        scenes = [sampler(i) for i in range(start, min(start + BATCH, count))]
        bytes_ = (compose(scenes, sprites, SIDE).pixels * 255).round().byte()
        pictures = [Image.fromarray(p.permute(1, 2, 0).numpy()) for p in bytes_]
        for towers, vectors in zip(encoders, seen, strict=True):
            pixels = torch.stack([towers.prepare(picture) for picture in pictures])
            vectors.append(towers.images(pixels).pooled)
    return [torch.cat(vectors) for vectors in seen]


def with_resize_mode(about: dict[str, Any]) -> dict[str, Any]:
    """Scenes are square; squashing keeps every object of a picture that is not."""
    return {**about, "preprocess_cfg": {**about["preprocess_cfg"], "resize_mode": "squash"}}


def copied(name: str, source: Path, new: Path) -> Towers:
    """The encoder of ``source``, its two files copied to ``new``."""
    shutil.copyfile(source / f"{name}.safetensors", new / f"{name}.safetensors")
    about = with_resize_mode(json.loads((source / f"{name}.json").read_text()))
    (new / f"{name}.json").write_text(json.dumps(about, indent=2) + "\n")
    return from_weights(new, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=INSIDE)
    parser.add_argument("--pictures", type=int, default=4096)
    options = parser.parse_args()
    new = INSIDE / "new"
    new.mkdir(parents=True, exist_ok=True)
    encoders = [copied(name, options.folder, new) for name in BACKBONES]
    words = all_words()
    everything = scene_vectors(encoders, words, FIT_SEED, options.pictures)
    themes = [[w for w in words if w.theme == theme] for theme in {w.theme: 0 for w in words}]
    by_theme = [scene_vectors(encoders, part, LIMIT_SEED, max(SIZES)) for part in themes]
    for towers, pooled, *parts in zip(encoders, everything, *by_theme, strict=True):
        known = familiarity(pooled, parts)
        save_familiarity(known, towers.fingerprint, new / f"{towers.name}.world.safetensors")
        limits = ", ".join(f"{limit:.2f}" for limit in known.limits)
        print(f"{towers.name}: weights {towers.fingerprint}, limits {limits}", flush=True)
    for file in sorted(new.iterdir()):
        file.chmod(0o644)
        file.replace(INSIDE / file.name)
    new.rmdir()


if __name__ == "__main__":
    main()
