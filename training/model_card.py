"""Measure the numbers of a model card on new scenes: `python training/model_card.py NAME`."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from encoded_scenes import EncodedScenes, encode_pixels, encode_scenes
from surelabel.data.emoji_sprites import draw_sprites
from surelabel.data.scene_arrangement import Scene, SceneSampler
from surelabel.data.scene_words import all_scene_words, read_scene_vocabulary
from surelabel.data.scenes import render_scenes
from surelabel.encoders import Encoder, load_encoder
from surelabel.losses import binary
from surelabel.methods import Linear, ZeroShot
from surelabel.metrics import PER_CLASS
from surelabel.training import (
    FeatureBatches,
    Objective,
    feature_batch_tensors,
    objective_mean_over_known,
    run_training_loop,
)

WEIGHTS = Path(__file__).parents[1] / "src" / "surelabel" / "encoders" / "weights"
# Seed and number of scenes of each split.
TRAIN, VALIDATION, TEST = (3, 10_000), (4, 2_000), (5, 5_000)
MAIN_SEED, MAIN_COUNT = 7, 5_000  # the seed differs from the test seed of the training
WEIGHT_DECAYS = (0.0, 0.01, 0.1)


def map_percent(scores: torch.Tensor, scenes: EncodedScenes) -> float:
    """Return the mean average precision over classes, in percent."""
    values = PER_CLASS["average_precision"](scores.detach().numpy(), scenes.targets)
    return 100 * float(np.nanmean(values))


def recall_at_count(scores: torch.Tensor, scenes: EncodedScenes) -> dict[str, float]:
    """Return the recall of main and of other objects if the true label count is predicted."""
    ranks = np.argsort(np.argsort(-scores.numpy(), axis=1), axis=1)
    is_predicted = ranks < scenes.targets.sum(axis=1, keepdims=True)
    is_main = np.zeros_like(scenes.targets)
    is_main[np.arange(len(scenes.main)), scenes.main] = True
    groups = {"main": is_main & scenes.targets, "others": ~is_main & scenes.targets}
    return {
        name: round(100 * float(is_predicted[group].mean()), 1) for name, group in groups.items()
    }


def linear_probe_map(
    encoder: Encoder, train: EncodedScenes, validation: EncodedScenes, test: EncodedScenes
) -> float:
    """Return the test mAP of a linear head; the validation mAP selects its weight decay."""
    names = [w.name for w in train.words]
    targets, known = feature_batch_tensors(train.targets, np.ones_like(train.targets))
    heads = []
    for decay in WEIGHT_DECAYS:
        head = Linear(encoder, names, centred=False, penalty_folds=0)
        source = FeatureBatches(train.features, targets, known, batch_size=256)
        run_training_loop(
            head,
            source,
            objective=Objective(objective_mean_over_known(binary)),
            epochs=20,
            learning_rate=0.01,
            weight_decay=decay,
        )
        heads.append((map_percent(head(validation.features), validation), head))
    return map_percent(max(heads, key=lambda h: h[0])[1](test.features), test)


def cosine_of_main_word(encoder: Encoder, count: int = 1000) -> dict[str, float]:
    """Return the mean cosine of image and main word, without and with five other objects."""
    words = all_scene_words()
    sampler, sprites = SceneSampler(words, seed=6), draw_sprites(words)
    crowded = [s for s in map(sampler, range(20 * count)) if len(s.words) == 6][:count]
    texts = encoder.encode_labels([w.name for w in words], ["a photo of a {}."])
    cosines = []
    for scenes in ([_main_object_only(scene) for scene in crowded], crowded):
        batches = [scenes[i : i + 128] for i in range(0, len(scenes), 128)]
        vectors = torch.cat(
            [encode_pixels(encoder, render_scenes(batch, sprites, 128).pixels) for batch in batches]
        )
        main_words = torch.tensor([int(s.words[0]) for s in scenes])
        cosines.append(float((vectors * texts[main_words]).sum(1).mean()))
    return {"alone": round(cosines[0], 3), "with_five_others": round(cosines[1], 3)}


def _main_object_only(scene: Scene) -> Scene:
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
def measure_encoder(name: str) -> dict[str, object]:
    """Return the numbers of the model card of one encoder."""
    encoder = load_encoder(name)
    all_scenes = encode_scenes(encoder, all_scene_words(), seed=MAIN_SEED, count=MAIN_COUNT)
    all_texts = encoder.encode_labels([w.name for w in all_scenes.words], ["a photo of a {}."])
    nearest = (all_scenes.features.pooled @ all_texts.T).argmax(1).numpy()
    train, validation, test = (
        encode_scenes(encoder, read_scene_vocabulary("scenes-80"), seed=seed, count=count)
        for seed, count in (TRAIN, VALIDATION, TEST)
    )
    names = [w.name for w in test.words]
    zero_shot = ZeroShot(encoder, names)(test.features)
    cosine = test.features.pooled @ encoder.encode_labels(names, ["a photo of a {}."]).T
    softmax = (encoder.scale * cosine).softmax(1)
    with torch.enable_grad():
        probe_map = linear_probe_map(encoder, train, validation, test)
    return {
        "main_top1_of_299": round(100 * float((nearest == all_scenes.main).mean()), 1),
        "zero_shot_map_scenes_80": round(map_percent(zero_shot, test), 1),
        "zero_shot_map_cosine": round(map_percent(cosine, test), 1),
        "zero_shot_map_softmax": round(map_percent(softmax, test), 1),
        "linear_probe_map_scenes_80": round(probe_map, 1),
        "recall_at_label_count": recall_at_count(softmax, test),
        "cosine_of_main_word": cosine_of_main_word(encoder),
        "megabytes": round((WEIGHTS / f"{name}.safetensors").stat().st_size / 1e6, 2),
    }


if __name__ == "__main__":
    for encoder_name in sys.argv[1:] or ["tiny-vit", "tiny-rn"]:
        card = measure_encoder(encoder_name)
        (WEIGHTS / f"{encoder_name}.card.json").write_text(json.dumps(card, indent=2) + "\n")
        print(encoder_name, json.dumps(card, indent=2))
