"""Measure an embedded encoder on fresh scenes: `python training/card.py NAME`, for its card."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from encoded_scenes import EncodedScenes, encode_pixels, encode_scenes
from surelabel.backbones import Backbone, load_backbone
from surelabel.data.emoji import draw_sprites
from surelabel.data.scenes import Sampler, Scene, compose
from surelabel.data.words import all_words, vocabulary
from surelabel.losses import binary
from surelabel.methods import Linear, ZeroShot
from surelabel.metrics import PER_CLASS
from surelabel.training import Labelled, Objective, fit, of_elements, tensors

WEIGHTS = Path(__file__).parents[1] / "src" / "surelabel" / "backbones" / "weights"
TRAIN, VALIDATION, TEST = (3, 10_000), (4, 2_000), (5, 5_000)  # seed and count of each set
MAIN_SEED, MAIN_COUNT = 7, 5_000  # not the seed that training watches
DECAYS = (0.0, 0.01, 0.1)


def mean_ap(scores: torch.Tensor, scenes: EncodedScenes) -> float:
    """Mean average precision over classes, in percent."""
    values = PER_CLASS["average_precision"](scores.detach().numpy(), scenes.targets)
    return 100 * float(np.nanmean(values))


def recall_at_count(scores: torch.Tensor, scenes: EncodedScenes) -> dict[str, float]:
    """With as many labels shown as are there: share found of main objects and of the others."""
    ranks = np.argsort(np.argsort(-scores.numpy(), axis=1), axis=1)
    found = ranks < scenes.targets.sum(axis=1, keepdims=True)
    is_main = np.zeros_like(scenes.targets)
    is_main[np.arange(len(scenes.main)), scenes.main] = True
    parts = {"main": is_main & scenes.targets, "others": ~is_main & scenes.targets}
    return {name: round(100 * float(found[there].mean()), 1) for name, there in parts.items()}


def probe(
    backbone: Backbone, train: EncodedScenes, held: EncodedScenes, test: EncodedScenes
) -> float:
    """Test mAP of a linear head on frozen vectors; its weight decay is chosen on validation."""
    names = [w.name for w in train.words]
    targets, known = tensors(train.targets, np.ones_like(train.targets))
    heads = []
    for decay in DECAYS:
        head = Linear(backbone, names)
        source = Labelled(train.features, targets, known, size=256)
        fit(
            head,
            source,
            objective=Objective(of_elements(binary)),
            epochs=20,
            learning_rate=0.01,
            weight_decay=decay,
        )
        heads.append((mean_ap(head(held.features), held), head))
    return mean_ap(max(heads, key=lambda h: h[0])[1](test.features), test)


def crowding(backbone: Backbone, count: int = 1000) -> dict[str, float]:
    """Cosine of the main word alone, and after five other objects were added to the picture."""
    words = all_words()
    sampler, sprites = Sampler(words, seed=6), draw_sprites(words)
    crowded = [s for s in map(sampler, range(20 * count)) if len(s.words) == 6][:count]
    texts = backbone.texts([w.name for w in words], ["a photo of a {}."])
    cosines = []
    for scenes in ([_alone(s) for s in crowded], crowded):
        parts = [scenes[i : i + 128] for i in range(0, len(scenes), 128)]
        vectors = torch.cat(
            [encode_pixels(backbone, compose(p, sprites, 128).pixels) for p in parts]
        )
        mains = torch.tensor([int(s.words[0]) for s in scenes])
        cosines.append(float((vectors * texts[mains]).sum(1).mean()))
    return {"alone": round(cosines[0], 3), "with_five_others": round(cosines[1], 3)}


def _alone(scene: Scene) -> Scene:
    return Scene(
        scene.words[:1],
        scene.centres[:1],
        scene.sides[:1],
        scene.angles[:1],
        scene.mirrored[:1],
        scene.tints[:1],
        scene.depths[:1],
        scene.theme,
        scene.background,
    )


@torch.no_grad()
def measure(name: str) -> dict[str, object]:
    backbone = load_backbone(name)
    everything = encode_scenes(backbone, all_words(), seed=MAIN_SEED, count=MAIN_COUNT)
    all_texts = backbone.texts([w.name for w in everything.words], ["a photo of a {}."])
    best = (everything.features.pooled @ all_texts.T).argmax(1).numpy()
    train, held, test = (
        encode_scenes(backbone, vocabulary("scenes-80"), seed=seed, count=count)
        for seed, count in (TRAIN, VALIDATION, TEST)
    )
    names = [w.name for w in test.words]
    zero_shot = ZeroShot(backbone, names)(test.features)
    cosine = test.features.pooled @ backbone.texts(names, ["a photo of a {}."]).T
    softmax = (backbone.scale * cosine).softmax(1)
    with torch.enable_grad():
        probed = probe(backbone, train, held, test)
    return {
        "main_top1_of_299": round(100 * float((best == everything.main).mean()), 1),
        "zero_shot_map_scenes_80": round(mean_ap(zero_shot, test), 1),
        "zero_shot_map_cosine": round(mean_ap(cosine, test), 1),
        "zero_shot_map_softmax": round(mean_ap(softmax, test), 1),
        "linear_probe_map_scenes_80": round(probed, 1),
        "recall_at_label_count": recall_at_count(softmax, test),
        "cosine_of_main_word": crowding(backbone),
        "megabytes": round((WEIGHTS / f"{name}.safetensors").stat().st_size / 1e6, 2),
    }


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["tiny-vit", "tiny-rn"]:
        found = measure(wanted)
        (WEIGHTS / f"{wanted}.card.json").write_text(json.dumps(found, indent=2) + "\n")
        print(wanted, json.dumps(found, indent=2))
