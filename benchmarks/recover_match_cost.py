"""Measure the cost of region matching in recover_match, and the memory of its training.

    python benchmarks/recover_match_cost.py [--quick]

The encoder is ViT-B-16 of open_clip with random weights, with images of 224 px and batches of 32
images, on one thread, in float32. Each case runs in a separate process.

share    Fraction of the time of inference of recover_match that matching takes (costs, region
         weights, plan, weighted means). Cosines are sampled like those of CLIP (a spread of 0.025
         around 0.25), because the cosines of random weights are nearly equal. Times are processor
         seconds, the best of several rounds.
texts    Number of labels that the first and the last layer of the text tower encode while a method
         of 1,000 labels is created and predicts three times; without prompts, and with four prompts
         in each of the last three layers.
memory   Peak memory of one training step, minus the memory before the step, of recover_match and of
         prompts in all layers of both towers. The input of the first trained block is precomputed.
"""

import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import open_clip
import torch
from torch import Tensor

from surelabel.data.vocabularies import VOCABULARIES
from surelabel.encoders.open_clip.encoder import OpenClipEncoder
from surelabel.losses import multi_matching
from surelabel.methods.recover_match.recover_match import RecoverMatch
from surelabel.methods.region_matching.region_matching import RegionMatching
from surelabel.records import Features

ARCHITECTURE, SIDE, GRID, WIDTH, LAYERS = "ViT-B-16", 224, (14, 14), 768, 12
NAMES = {65: VOCABULARIES["coco-48-17"].names, 1_006: VOCABULARIES["nus-925-81"].names}
ALL_LAYER_PROMPTS = "prompts in all layers"
METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "recover_match": {"text_prompts": 4},
    "recover_match without prompts": {},
    ALL_LAYER_PROMPTS: {
        "depth": LAYERS,
        "visual_prompts": 4,
        "text_prompts": 4,
        "text_prompt_layers": LAYERS,
        "transport": "average",
        "knowledge_weight": 0.0,
        "self_aware": False,
        "text_guided_selection": False,
    },
}
SHARE_GOAL, MEMORY_GOAL = 0.02, 0.6


def create_encoder() -> OpenClipEncoder:
    """Create the encoder with random weights."""
    torch.manual_seed(0)
    model = open_clip.create_model(ARCHITECTURE)
    return OpenClipEncoder(
        model,
        open_clip.get_tokenizer(ARCHITECTURE),
        name=ARCHITECTURE,
        config=open_clip.get_model_config(ARCHITECTURE),
        preprocess_cfg=model.visual.preprocess_cfg,
    )


def random_features(images: int, depth: int) -> Features:
    """Return random features for the input of the last ``depth`` blocks."""
    p = GRID[0] * GRID[1]
    return Features(
        pooled=torch.randn(images, 512),
        grid=GRID,
        layers={-depth - 1: torch.randn(images, 1 + p, WIDTH)},
        self_aware_sum=torch.randn(images, p, WIDTH),
    )


def measure_matching_share(labels: int, images: int, rounds: int) -> dict[str, float]:
    """Return the processor seconds of matching, and of the other steps of inference."""
    encoder = create_encoder()
    method = RecoverMatch(encoder, NAMES[labels], transport="average", text_prompts=4).eval()
    matching = RegionMatching(logit_scale=100.0)
    cosines = 0.25 + 0.025 * torch.randn(images, GRID[0] * GRID[1], labels)
    pixels = torch.randn(images, 3, SIDE, SIDE)
    other_seconds, matching_seconds = [], []
    with torch.no_grad():
        method(random_features(2, 3))  # encodes the label texts
        for _ in range(rounds):
            start = time.process_time()
            method(encoder.encode_ladder_features(pixels, first_block=0, depth=3))
            between = time.process_time()
            matching.pool_similarities(cosines)
            other_seconds.append(between - start)
            matching_seconds.append(time.process_time() - between)
    return {"matching": min(matching_seconds), "other": min(other_seconds)}


def count_encoded_texts(prompts: int) -> dict[str, int]:
    """Return the number of labels that the first and the last text layer encode.

    The labels are counted from the creation of the method to its third prediction.
    """
    encoder, counts = create_encoder(), {"first": 0, "last": 0}
    names = NAMES[1_006][:1_000]
    blocks = encoder.model.transformer.resblocks

    def counter(layer: str) -> Any:
        def hook(_: Any, inputs: tuple[Tensor, ...]) -> None:
            counts[layer] += len(inputs[0])

        return hook

    blocks[0].attn.register_forward_pre_hook(counter("first"))
    blocks[-1].attn.register_forward_pre_hook(counter("last"))
    method = RecoverMatch(encoder, names, text_prompts=prompts).eval()
    last_at_creation = counts["last"]
    with torch.no_grad():
        for _ in range(3):
            method(random_features(1, 3))
    return {"names": len(names), **counts, "last_at_creation": last_at_creation}


def measure_training_memory(method_title: str, images: int) -> dict[str, float]:
    """Return the peak memory of a training step in MiB, with seconds and parameters."""
    settings = METHOD_SETTINGS[method_title]
    method = RecoverMatch(create_encoder(), NAMES[65], **settings).train()
    optimizer = torch.optim.AdamW(p for p in method.parameters() if p.requires_grad)
    features = random_features(images, settings.get("depth", 3))
    targets = (torch.rand(images, 65) < 0.05).float()
    known = torch.ones_like(targets, dtype=torch.bool)
    start, memory_before = time.process_time(), peak_memory_mib(reset=True)
    scores = method.training_scores(features, targets, known)
    losses = [multi_matching(head_scores, targets, known) for head_scores in scores]
    torch.stack(losses).mean().backward()
    optimizer.step()
    parameters = sum(p.numel() for p in method.parameters() if p.requires_grad)
    seconds = time.process_time() - start
    memory = peak_memory_mib() - memory_before
    return {"memory": memory, "seconds": seconds, "parameters": parameters}


def peak_memory_mib(*, reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


CASES = {
    "share": measure_matching_share,
    "texts": count_encoded_texts,
    "memory": measure_training_memory,
}


def run_case_in_new_process(*case: object) -> Any:
    """Run one case in a new process and return its result."""
    process = subprocess.run(
        [sys.executable, __file__, "case", json.dumps(case)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(process.stdout.splitlines()[-1])


def print_case(name: str, *arguments: Any) -> None:
    """Run one case, and print its result as JSON."""
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # open_clip warns about random weights
    print(json.dumps(CASES[name](*arguments)))


def main() -> None:
    """Print all three measurements with their goals."""
    quick = "--quick" in sys.argv
    images, rounds = (4, 1) if quick else (32, 3)
    print(f"{ARCHITECTURE}, {SIDE} px, {images} images")
    for labels in NAMES:
        seconds = run_case_in_new_process("share", labels, images, rounds)
        total = seconds["matching"] + seconds["other"]
        print(
            f"{labels:5,} labels: matching {1000 * seconds['matching']:7.1f} ms of "
            f"{total:6.2f} s, {100 * seconds['matching'] / total:.2f} % "
            f"(goal: {100 * SHARE_GOAL:.0f} % or less)",
            flush=True,
        )
    for prompts in (0, 4):
        counts = run_case_in_new_process("texts", prompts)
        print(
            f"{counts['names']:,} labels, {prompts} prompts per layer, one creation and three "
            f"predictions: {counts['first']:,} in the first text layer, {counts['last']:,} in the "
            f"last, {counts['last_at_creation']:,} of them at creation (goal: each label once)",
            flush=True,
        )
    results = {title: run_case_in_new_process("memory", title, images) for title in METHOD_SETTINGS}
    reference = results[ALL_LAYER_PROMPTS]["memory"]
    for title, result in results.items():
        print(
            f"{title:33} {result['parameters']:12,.0f} parameters  {result['memory']:7,.0f} MiB "
            f"{100 * result['memory'] / reference:4.0f} %  {result['seconds']:6.1f} s per step"
        )
    print(f"(goal: {100 * MEMORY_GOAL:.0f} % or less)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        print_case(*json.loads(sys.argv[2]))
    else:
        main()
