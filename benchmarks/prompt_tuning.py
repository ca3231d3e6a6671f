"""Measure the cost of prompt tuning: cached features, class covariance and many labels.

    python benchmarks/prompt_tuning.py [--quick]

The encoder is ViT-B-16 of open_clip with random weights, with images of 224 px and batches of 32
images, on one thread, in float32. Each case runs in a separate process. Seconds are processor
seconds. CCR is the regularizer `class_covariance`.

epoch     One epoch on cached features, and one epoch in which the image tower encodes the images of
          each batch again. Both epochs have the same number of steps, so the ratio of two steps is
          measured: steps with and without encoding alternate, and the shortest step of each kind is
          used. Pixels are in memory, so decoding is not counted. The column "arithmetic" has the
          number of multiply-adds of the image tower for a batch, divided by that of the text tower
          for a step (forward, and backward to the context). Sequences are truncated to the length
          of the longest label.
step      Time that class_covariance adds to a step on cached features: the median over alternating
          steps, with the interquartile range of the paired ratios.
memory    Peak memory of one training step, minus the memory before the step. cocoop is measured
          with tiny-vit, because it encodes every label for every image.
"""

import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from recover_match_cost import ARCHITECTURE, SIDE, create_encoder, peak_memory_mib
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from surelabel.data.vocabularies import VOCABULARIES
from surelabel.encoders import Encoder, load_encoder, prompt_templates
from surelabel.losses import binary
from surelabel.methods import METHODS, Method
from surelabel.records import Features
from surelabel.regularizers import class_covariance
from surelabel.training import (
    Batch,
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

NAMES = VOCABULARIES["nus-925-81"].names
IMAGES, WIDTH = 32, 512
CCR_WEIGHT = 0.1
EPOCHS = [("clip_adapter", 80, 10), ("coop", 20, 10), ("coop", 40, 7), ("coop", 80, 4)]
STEPS = [(method, labels) for method in ("clip_adapter", "coop") for labels in (40, 80)]
STEPS_OF_CACHED = {"clip_adapter": 20, "coop": 1}  # number of steps that are timed together
STEP_GOAL = 10  # maximum increase of the time of a step, in percent
MEMORY = [("coop", labels) for labels in (100, 1_000, 2_000)]
MEMORY += [("cocoop", labels) for labels in (100, 1_000)]


def create_encoder_with_random_texts() -> Encoder:
    """Create the encoder with random vectors of frozen texts.

    The vectors of frozen texts are constant in training, so they need not be computed.
    """
    encoder: Any = create_encoder()
    encoder.encode_labels = lambda names, _: F.normalize(torch.randn(len(names), WIDTH), dim=-1)
    return encoder


class EncodedBatches(FeatureBatches):
    """Batches whose images are encoded again in each step.

    Args:
        encoder: Encoder of the images.
        features: Features of the images of one batch, which are replaced.
        targets: Targets of the images, ``(n, c)``.
    """

    def __init__(self, encoder: Encoder, features: Features, targets: Tensor):
        super().__init__(features, targets, targets >= 0, batch_size=IMAGES)
        self._encoder, self._pixels = encoder, torch.randn(IMAGES, 3, SIDE, SIDE)

    def batches(self, generator: torch.Generator, skip: int = 0) -> Generator[Batch]:
        """Yield the batches of one epoch with new features."""
        for batch in super().batches(generator, skip):
            yield replace(batch, features=self._encoder.encode_images(self._pixels))


class Training:
    """Training of a method on random features and targets.

    Args:
        encoder: Encoder with random weights.
        method: Key of the method.
        labels: Number of labels.
        ccr_weight: Weight of ``class_covariance``.
    """

    def __init__(self, encoder: Encoder, method: str, labels: int, *, ccr_weight: float = 0.0):
        names = [*NAMES, *(f"{name} cluster" for name in NAMES)][:labels]
        self._method: Method = METHODS[method](encoder, names)
        texts = encoder.encode_labels(names, prompt_templates("one")) if ccr_weight else None
        self._objective = Objective(
            objective_mean_over_known(binary),
            regularizers=((class_covariance, ccr_weight),) if ccr_weight else (),
            texts=texts,
        )
        self._features = Features(F.normalize(torch.randn(IMAGES, encoder.width), dim=-1))
        self._targets = (torch.rand(IMAGES, labels) < 0.05).float()
        self.cached = FeatureBatches(
            self._features, self._targets, self._targets >= 0, batch_size=IMAGES
        )
        self.encoded = EncodedBatches(encoder, self._features, self._targets)

    def seconds(self, source: FeatureBatches, steps: int) -> float:
        """Run some training steps; return the processor seconds of one step."""
        start = time.process_time()
        run_training_loop(
            self._method,
            source,
            objective=self._objective,
            epochs=steps,
            learning_rate=self._method.recipe.learning_rate,
        )
        return (time.process_time() - start) / steps


def measure_epoch(method: str, labels: int, rounds: int) -> dict[str, float]:
    """Return the seconds of a step with cached and with encoded features, and multiply-adds."""
    encoder = create_encoder_with_random_texts()
    training = Training(encoder, method, labels)
    training.seconds(training.cached, 1)
    cached, encoded = [], []
    for _ in range(rounds):
        cached.append(training.seconds(training.cached, STEPS_OF_CACHED[method]))
        encoded.append(training.seconds(training.encoded, 1))
    pixels = torch.randn(IMAGES, 3, SIDE, SIDE, requires_grad=True)  # no fused layers
    image = count_multiply_adds(lambda: create_encoder().model.visual(pixels))
    step = count_multiply_adds(lambda: training.seconds(training.cached, 1))
    return {"cached": min(cached), "encoded": min(encoded), "image": image, "step": step}


def count_multiply_adds(function: Callable[[], object]) -> float:
    """Return the number of multiply-adds of matrix products during the call of a function."""
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops() / 2


def measure_step(method: str, labels: int, rounds: int) -> dict[str, Any]:
    """Return the median seconds of a step without CCR, and quartiles of the ratio with CCR."""
    encoder = create_encoder_with_random_texts()
    pair = [Training(encoder, method, labels, ccr_weight=weight) for weight in (0.0, CCR_WEIGHT)]
    steps = STEPS_OF_CACHED[method]
    for training in pair:
        training.seconds(training.cached, steps)
    seconds = [[t.seconds(t.cached, steps) for t in pair] for _ in range(rounds)]
    quartiles = statistics.quantiles((ccr / without for without, ccr in seconds), n=4)
    return {"seconds": statistics.median(s for s, _ in seconds), "quartiles": quartiles}


def measure_memory(method: str, labels: int) -> dict[str, float]:
    """Return the peak memory of a training step in MiB, and its seconds."""
    is_embedded = method == "cocoop"
    encoder = load_encoder("tiny-vit") if is_embedded else create_encoder_with_random_texts()
    training = Training(encoder, method, labels)
    before = peak_memory_mib(reset=True)
    seconds = training.seconds(training.cached, 1)
    return {"memory": peak_memory_mib() - before, "seconds": seconds}


CASES = {"epoch": measure_epoch, "step": measure_step, "memory": measure_memory}


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


def print_epochs(cases: list[tuple[str, int, int]], rounds: int) -> None:
    """Print the ratios of the times of epochs with encoding and with cached features."""
    print("| method | labels | step, cached, s | with encoding, s | ratio | goal | arithmetic |")
    print("|---|---|---|---|---|---|---|")
    for method, labels, goal in cases:
        found = run_case_in_new_process("epoch", method, labels, rounds)
        gigas = (found["image"] / 1e9, found["step"] / 1e9)
        print(
            f"| `{method}` | {labels} | {found['cached']:.4f} | {found['encoded']:.2f} | "
            f"{found['encoded'] / found['cached']:,.0f} | {goal} | "
            f"{gigas[0]:.0f} / {gigas[1]:.3g} = {gigas[0] / gigas[1]:,.0f} |",
            flush=True,
        )


def print_steps(cases: list[tuple[str, int]], rounds: dict[str, int]) -> None:
    """Print the time that CCR adds to a step."""
    print(f"\n| method | labels | step, ms | CCR adds, % (goal: {STEP_GOAL} or less) |")
    print("|---|---|---|---|")
    for method, labels in cases:
        found = run_case_in_new_process("step", method, labels, rounds[method])
        low, middle, high = (100 * (ratio - 1) for ratio in found["quartiles"])
        print(
            f"| `{method}` | {labels} | {1000 * found['seconds']:.2f} | "
            f"{middle:.1f} ({low:.1f} to {high:.1f}) |",
            flush=True,
        )


def print_memory(cases: list[tuple[str, int]]) -> None:
    """Print the peak memory of a step."""
    print("\n| method | labels | peak memory of a step, MiB | s |")
    print("|---|---|---|---|")
    for method, labels in cases:  # cocoop has another encoder
        found = run_case_in_new_process("memory", method, labels)
        print(
            f"| `{method}` | {labels:,} | {found['memory']:,.0f} | {found['seconds']:.1f} |",
            flush=True,
        )


def main() -> None:
    """Print the three tables."""
    quick = "--quick" in sys.argv
    print(f"{ARCHITECTURE}, {SIDE} px, batches of {IMAGES} images\n")
    print_epochs(EPOCHS[:2] if quick else EPOCHS, rounds=1 if quick else 3)
    print_steps(STEPS[:1] if quick else STEPS, {"clip_adapter": 10 if quick else 100, "coop": 15})
    print_memory(MEMORY[:1] if quick else MEMORY)


if __name__ == "__main__":
    if sys.argv[1:2] == ["case"]:
        print_case(*json.loads(sys.argv[2]))
    else:
        main()
