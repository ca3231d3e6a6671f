"""Compare label-pair regularization (exact, grid, sampled) with the form of all T · T pairs.

    python benchmarks/label_pair.py [--quick]

Log-odds are random, with about 3, 5 or (dense) 300 of T targets positive. Each case runs in a
separate process, on one thread, in float32. The script prints the processor seconds of value and
gradient, best of several rounds, and the peak memory minus the memory of the data. The T · T form
is plain torch with autograd. Values and gradients are compared with this form or, if it does not
fit into memory, with the exact sum.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.records import TrainingStep
from surelabel.regularizers import label_pair, label_pair_on_grid, label_pair_sampled

CASES = [  # labels T, images B, positive targets, forms
    (80, 256, 3, ["square", "label_pair", "label_pair_on_grid"]),
    (1_000, 64, 5, ["square", "label_pair", "label_pair_on_grid"]),
    (1_000, 256, 5, ["square", "label_pair", "label_pair_on_grid"]),
    (1_000, 256, 300, ["label_pair", "label_pair_on_grid"]),
    (10_000, 2, 5, ["square", "label_pair", "label_pair_on_grid"]),
    (10_000, 256, 5, ["label_pair", "label_pair_on_grid", "label_pair_sampled"]),
    (10_000, 256, 300, ["label_pair", "label_pair_on_grid"]),
]
GOAL = "1,000 labels × 256 images: 20 × the speed, 50 × less memory, or more"


def square(step: TrainingStep) -> Tensor:
    """Return the regularizer from all T · T pairs of each image."""
    z, targets = step.scores, step.targets
    labels = z.shape[1]
    gaps = z[:, None, :] - z[:, :, None]
    pairs = targets[:, :, None] * (1 - targets)[:, None, :]
    return 2 / (labels * (labels - 1)) * (F.softplus(gaps) * pairs).sum((1, 2)).mean()


FORMS: dict[str, Callable[[TrainingStep], Tensor]] = {
    "square": square,
    "label_pair": label_pair,
    "label_pair_on_grid": label_pair_on_grid,
    "label_pair_sampled": label_pair_sampled,
}


def print_case(form: str, labels: int, images: int, positives: int, file: str) -> None:
    """Print value, seconds and MiB of one case, and write its gradient."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    z = 2 * torch.randn(images, labels, generator=generator)
    targets = (torch.rand(images, labels, generator=generator) < positives / labels).float()
    step = TrainingStep(z.requires_grad_(), None, targets, targets >= 0)
    small = TrainingStep(
        z.detach()[:1, :9].requires_grad_(), None, targets[:1, :9], targets[:1, :9] >= 0
    )
    FORMS[form](small).backward()  # loads modules before the measurement
    memory_before, seconds = peak_memory_mib(reset=True), []
    while len(seconds) < 2 or (sum(seconds) < 2 and len(seconds) < 15):
        z.grad = None
        start = time.process_time()
        value = FORMS[form](step)
        value.backward()
        seconds.append(time.process_time() - start)
    memory = peak_memory_mib() - memory_before
    np.save(file, z.grad)
    print(json.dumps({"value": value.item(), "seconds": min(seconds), "memory": memory}))


def peak_memory_mib(*, reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> None:
    """Print one line for each form of each case, relative to the first form of the case."""
    print(f"{'T':>6} {'B':>4} {'positive':>8}  {'form':20}{'seconds':>9}{'MiB':>8}", end="")
    print(f"{'faster':>9}{'smaller':>9}  {'value':12}{'error':>9}{'gradient error':>17}")
    for labels, images, positives, forms in CASES:
        if "--quick" in sys.argv and labels * labels * images > 10**8:
            forms = [form for form in forms if form != "square"]
        with tempfile.TemporaryDirectory() as folder:
            compare_forms(labels, images, positives, forms, Path(folder))
    print(f"goal: {GOAL}")


def compare_forms(labels: int, images: int, positives: int, forms: list[str], folder: Path) -> None:
    """Print every form of one case; the first form is the reference."""
    reference, reference_gradient = {}, np.zeros(1)
    for form in forms:
        file = folder / f"{form}.npy"
        case = [form, labels, images, positives, file]
        process = subprocess.run(
            [sys.executable, __file__, *map(str, case)], capture_output=True, text=True, check=True
        )
        result, gradient = json.loads(process.stdout), np.load(file)
        if not reference:
            reference, reference_gradient = result, gradient
        largest_error = np.abs(gradient - reference_gradient).max()
        relative_error = largest_error / np.abs(reference_gradient).max()
        print(
            f"{labels:6} {images:4} {positives:8}  {form:20}{result['seconds']:9.4f}"
            f"{result['memory']:8.1f}{reference['seconds'] / result['seconds']:8.1f}×"
            f"{reference['memory'] / max(result['memory'], 0.1):8.1f}×  {result['value']:<12.9f}"
            f"{abs(result['value'] / reference['value'] - 1):9.1e}"
            f"{relative_error:17.1e}",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) == 6:
        print_case(sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5])
    else:
        main()
