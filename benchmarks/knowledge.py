"""What matching regions to labels costs beside the encoder, and what training it holds in memory.

    python benchmarks/knowledge.py [--quick]

ViT-B-16 of open_clip with random weights, 224 px, 32 pictures at once, one thread, float32, every
case in a process of its own.

share    Matching (costs, weights of regions, plan, weighted means) in the inference of
         recover_match. Cosines are drawn as CLIP has them (a spread of 0.025 around 0.25), because
         those of random weights are all alike. Processor seconds, the best of several rounds.
texts    How many names go through the first and the last layer of the text tower while a method of
         1,000 names is made and predicts three times; without prompts, and with four in each of
         the last three layers.
memory   The peak of one training step above what is held before it, of recover_match and of
         prompts in all layers of both towers; what enters the first block that takes part is ready.
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

from surelabel.backbones.towers import Towers
from surelabel.data.vocabularies import VOCABULARIES
from surelabel.losses import multi_matching
from surelabel.methods.recover_match import RecoverMatch
from surelabel.methods.region_matching import RegionMatching
from surelabel.records import Features

TOWER, SIDE, GRID, WIDTH, LAYERS = "ViT-B-16", 224, (14, 14), 768, 12
NAMES = {65: VOCABULARIES["coco-48-17"].names, 1_006: VOCABULARIES["nus-925-81"].names}
TRAINED: dict[str, dict[str, Any]] = {
    "recover_match": {"prompts": 4},
    "recover_match, names as they are": {},
    "prompts in all layers": {
        "depth": LAYERS,
        "visual_prompts": 4,
        "prompts": 4,
        "text_layers": LAYERS,
        "transport": "average",
        "knowledge": 0.0,
        "self_aware": False,
        "selection": False,
    },
}
SHARE, MEMORY = 0.02, 0.6  # goals


def tower() -> Towers:
    """The encoder, with weights that nobody trained."""
    torch.manual_seed(0)
    model = open_clip.create_model(TOWER)
    return Towers(
        model,
        open_clip.get_tokenizer(TOWER),
        name=TOWER,
        config=open_clip.get_model_config(TOWER),
        preprocess=model.visual.preprocess_cfg,
    )


def drawn(pictures: int, depth: int) -> Features:
    """What enters the last blocks, at random."""
    p = GRID[0] * GRID[1]
    return Features(
        pooled=torch.randn(pictures, 512),
        grid=GRID,
        layers={-depth - 1: torch.randn(pictures, 1 + p, WIDTH)},
        beside=torch.randn(pictures, p, WIDTH),
    )


def share(labels: int, pictures: int, rounds: int) -> dict[str, float]:
    """Seconds of matching and of all the rest."""
    backbone = tower()
    method = RecoverMatch(backbone, NAMES[labels], transport="average", prompts=4).eval()
    matching = RegionMatching(sharpness=100.0)
    cosines = 0.25 + 0.025 * torch.randn(pictures, GRID[0] * GRID[1], labels)
    pixels = torch.randn(pictures, 3, SIDE, SIDE)
    rest, own = [], []
    with torch.no_grad():
        method(drawn(2, 3))  # reads the names
        for _ in range(rounds):
            start = time.process_time()
            method(backbone.ladder(pixels, first=0, depth=3))
            between = time.process_time()
            matching.pooled(cosines)
            rest.append(between - start)
            own.append(time.process_time() - between)
    return {"matching": min(own), "rest": min(rest)}


def texts(prompts: int) -> dict[str, int]:
    """Names that go through the first and the last text layer, from making to third prediction."""
    backbone, counts = tower(), {"first": 0, "last": 0}
    names = NAMES[1_006][:1_000]
    blocks = backbone.model.transformer.resblocks

    def counted(layer: str) -> Any:
        def hook(_: Any, given: tuple[Tensor, ...]) -> None:
            counts[layer] += len(given[0])

        return hook

    blocks[0].attn.register_forward_pre_hook(counted("first"))
    blocks[-1].attn.register_forward_pre_hook(counted("last"))
    method = RecoverMatch(backbone, names, prompts=prompts).eval()
    made = counts["last"]
    with torch.no_grad():
        for _ in range(3):
            method(drawn(1, 3))
    return {"names": len(names), **counts, "last_when_made": made}


def memory(way: str, pictures: int) -> dict[str, float]:
    """The peak of a training step, in MiB."""
    settings = TRAINED[way]
    method = RecoverMatch(tower(), NAMES[65], **settings).train()
    optimizer = torch.optim.AdamW(p for p in method.parameters() if p.requires_grad)
    features = drawn(pictures, settings.get("depth", 3))
    targets = (torch.rand(pictures, 65) < 0.05).float()
    known = torch.ones_like(targets, dtype=torch.bool)
    start, before = time.process_time(), resident(reset=True)
    heads = method.learning(features, targets, known)
    torch.stack([multi_matching(head, targets, known) for head in heads]).mean().backward()
    optimizer.step()
    learnt = sum(p.numel() for p in method.parameters() if p.requires_grad)
    seconds = time.process_time() - start
    return {"memory": resident() - before, "seconds": seconds, "learnt": learnt}


def resident(*, reset: bool = False) -> float:
    """The most memory held since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def in_a_process(*case: object) -> Any:
    """What one case prints."""
    run = subprocess.run(
        [sys.executable, __file__, "case", json.dumps(case)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


def case(what: str, *given: Any) -> None:
    """Print what one case comes to."""
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # of open_clip, that nobody trained these weights
    print(json.dumps({"share": share, "texts": texts, "memory": memory}[what](*given)))


def main() -> None:
    """Print all three, each beside its goal."""
    quick = "--quick" in sys.argv
    pictures, rounds = (4, 1) if quick else (32, 3)
    print(f"{TOWER}, {SIDE} px, {pictures} pictures")
    for labels in NAMES:
        found = in_a_process("share", labels, pictures, rounds)
        part = found["matching"] / (found["matching"] + found["rest"])
        print(
            f"{labels:5,} names: matching {1000 * found['matching']:7.1f} ms of "
            f"{found['matching'] + found['rest']:6.2f} s, {100 * part:.2f} % "
            f"(goal: {100 * SHARE:.0f} % or less)",
            flush=True,
        )
    for prompts in (0, 4):
        found = in_a_process("texts", prompts)
        print(
            f"{found['names']:,} names, {prompts} prompts a layer, made and asked three times: "
            f"{found['first']:,} through the first text layer, {found['last']:,} through the last, "
            f"{found['last_when_made']:,} of them without prompts (goal: each name once)",
            flush=True,
        )
    held = {way: in_a_process("memory", way, pictures) for way in TRAINED}
    most = held["prompts in all layers"]["memory"]
    for way, found in held.items():
        print(
            f"{way:33} {found['learnt']:12,.0f} learnt  {found['memory']:7,.0f} MiB "
            f"{100 * found['memory'] / most:4.0f} %  {found['seconds']:6.1f} s a step"
        )
    print(f"(goal: {100 * MEMORY:.0f} % or less)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        case(*json.loads(sys.argv[2]))
    else:
        main()
