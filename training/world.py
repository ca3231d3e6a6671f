"""Put trained encoders into the package: `python training/world.py DIR`.

Copies the weights of DIR and stores beside them where the image vectors of scenes lie, so that
an encoder can tell pictures that look nothing like its world.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from surelabel.backbones.embedded import BACKBONES, from_weights
from surelabel.backbones.familiarity import familiarity, save_familiarity
from surelabel.backbones.towers import Towers
from surelabel.data.emoji import Sprites, draw_sprites
from surelabel.data.scenes import Sampler, compose
from surelabel.data.words import all_words

INSIDE = Path(__file__).parents[1] / "src" / "surelabel" / "backbones" / "weights"
BATCH, SIDE = 64, 128  # pixels of the collections; the encoders shrink them
FIT_SEED, LIMIT_SEED = 2, 3


def pictures_of(seed: int, start: int, count: int, sprites: Sprites) -> list[Image.Image]:
    """Scenes as users store them: eight bits a colour."""
    sampler = Sampler(all_words(), seed=seed)
    scenes = [sampler(i) for i in range(start, start + count)]
    levels = (compose(scenes, sprites, SIDE).pixels * 255).round().byte()
    return [Image.fromarray(p.permute(1, 2, 0).numpy()) for p in levels]


def scene_vectors(towers: Towers, seed: int, count: int, sprites: Sprites) -> Tensor:
    batches = []
    for start in range(0, count, BATCH):
        pictures = pictures_of(seed, start, min(BATCH, count - start), sprites)
        batches.append(towers.images(torch.stack([towers.prepare(p) for p in pictures])).pooled)
    return torch.cat(batches)


def with_resize_mode(about: dict[str, Any]) -> dict[str, Any]:
    """Scenes are square; squashing keeps every object of a picture that is not."""
    return {**about, "preprocess_cfg": {**about["preprocess_cfg"], "resize_mode": "squash"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=INSIDE)
    parser.add_argument("--pictures", type=int, default=4096)
    options = parser.parse_args()
    sprites = draw_sprites(all_words())
    for name in BACKBONES:
        new = INSIDE / f"new-{name}"
        new.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(options.folder / f"{name}.safetensors", new / f"{name}.safetensors")
        about = with_resize_mode(json.loads((options.folder / f"{name}.json").read_text()))
        (new / f"{name}.json").write_text(json.dumps(about, indent=2) + "\n")
        towers = from_weights(new, name)
        known = familiarity(
            scene_vectors(towers, FIT_SEED, options.pictures, sprites),
            scene_vectors(towers, LIMIT_SEED, options.pictures // 2, sprites),
        )
        save_familiarity(known, towers.fingerprint, new / f"{name}.world.safetensors")
        for file in sorted(new.iterdir()):
            file.chmod(0o644)
            file.replace(INSIDE / file.name)
        new.rmdir()
        print(f"{name}: weights {towers.fingerprint}, limit {known.limit:.3f}", flush=True)


if __name__ == "__main__":
    main()
